"""Packages of the extra `text`, imported where they are needed."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Generator
from typing import Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.extras import install_line


def imported(name: str, extra: str = "text") -> Any:
    """Return a module of an extra. Raises UsageError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise UsageError(
            f"text generation needs the package {name.split('.')[0]}: {e}",
            notes=[install_line(extra)],
        ) from e


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Keep transformers' logs and progress bars off the terminal; problems are our errors."""
    logs = imported("transformers").utils.logging
    level, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity(logs.CRITICAL)
    logs.disable_progress_bar()
    try:
        yield
    finally:
        logs.set_verbosity(level)
        if bars:
            logs.enable_progress_bar()

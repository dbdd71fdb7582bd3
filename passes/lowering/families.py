"""Imports every module of lowerings, which registers them."""

from __future__ import annotations

import importlib
import pkgutil

from mgx_mlir.passes.lowering import ops


def load() -> None:
    """Import every family of lowerings, so that it registers them."""
    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")

"""The TensorFlow operators, one module per family; `load` registers them all."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every family (once)."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")

"""The ONNX operators, one module per family; `load` registers them all."""

from __future__ import annotations

import importlib
import pkgutil

from mgx_mlir.core import plugins


def load() -> None:
    """Import every family (once), and the plugins."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    plugins.load()

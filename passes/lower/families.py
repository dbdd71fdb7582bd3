"""Imports every module of lowerings, which registers them."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    from mgx_mlir.passes import lower

    for module in pkgutil.iter_modules(lower.__path__):
        importlib.import_module(f"{lower.__name__}.{module.name}")

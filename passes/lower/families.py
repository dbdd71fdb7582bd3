"""Imports every family of lowerings, which registers them."""

from __future__ import annotations

import importlib

FAMILIES = ("linear", "pooling", "reduce", "movement", "indexing", "generate", "quant")


def load() -> None:
    for name in FAMILIES:
        importlib.import_module(f"mgx_mlir.passes.lower.{name}")

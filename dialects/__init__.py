"""The migraphx dialect: importing this package defines every operator class."""

from __future__ import annotations

import importlib
import pkgutil

from mgx_mlir.core import plugins
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Migraphx, Op
from mgx_mlir.dialects import migraphx

for _module in pkgutil.iter_modules(migraphx.__path__):
    importlib.import_module(f"{migraphx.__name__}.{_module.name}")


def load(ctx: ir.Context | None = None) -> None:
    """Load every operator into `ctx`, which must not have the dialect yet.

    Without a context it does nothing: importing it has defined the classes.
    """
    plugins.load()
    if ctx is not None:
        with ctx, ir.Location.unknown():
            Migraphx.load()


def ops() -> dict[str, type[Op]]:
    """Return every operator class by its name without `migraphx.`."""
    plugins.load()
    return dict(OPS)


__all__ = ["load", "ops"]

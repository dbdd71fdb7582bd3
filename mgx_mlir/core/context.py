"""Making MLIR contexts that hold the dialect."""

from __future__ import annotations

from mgx_mlir.core import plugins
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Migraphx


def new_context() -> ir.Context:
    """Return a context with the operator classes of all plugins and of what is imported by now.

    Any thread may ask.

    Multithreading stays off: it deadlocks with interfaces written in Python.
    """
    plugins.load()
    ctx = ir.Context()
    with ctx, ir.Location.unknown():
        Migraphx.load()
    return ctx

"""Making MLIR contexts that hold the dialect."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Migraphx


def new_context() -> ir.Context:
    """A context with every operator class that is imported by now loaded. Any thread may ask.

    Multithreading stays off: it deadlocks with interfaces written in Python.
    """
    ctx = ir.Context()
    with ctx, ir.Location.unknown():
        Migraphx.load()
    return ctx

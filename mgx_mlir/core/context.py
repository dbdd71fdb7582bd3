"""Making MLIR contexts that hold the dialect."""

from __future__ import annotations

from mgx_mlir.core import interrupts, plugins
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Migraphx

# Dialects that the lowering and the tools build, besides those of parsed text: the parser and the
# passes load their own. All that the bindings have would take 4 ms of every compile.
DIALECTS = (
    *("affine", "arith", "cf", "func", "irdl", "linalg", "llvm", "math", "ml_program", "scf"),
    *("tensor", "vector"),
)


@interrupts.held
def new_context() -> ir.Context:
    """Return a context with the operator classes of all plugins and of what is imported by now.

    Any thread may ask.

    Multithreading stays off: it deadlocks with interfaces written in Python.
    """
    plugins.load()
    ctx = ir.Context(load_on_create_dialects=[])
    for name in DIALECTS:
        ctx.get_dialect_descriptor(name)
    with ctx, ir.Location.unknown():
        Migraphx.load()
    return ctx

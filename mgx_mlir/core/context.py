"""Creation of MLIR contexts with the dialect loaded."""

from __future__ import annotations

from mgx_mlir.core import interrupts, plugins
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Migraphx

# Dialects whose ops the lowering and the tools build. The parser and MLIR's passes load theirs.
# Loading all dialects would cost every compile 4 ms.
DIALECTS = (
    *("affine", "arith", "cf", "func", "irdl", "linalg", "llvm", "math", "ml_program", "scf"),
    *("tensor", "vector"),
)


@interrupts.held
def new_context() -> ir.Context:
    """Return a context with the operator classes of all plugins and of all modules imported so far.

    Thread-safe.

    MLIR's multithreading stays off: it deadlocks with interfaces written in Python.
    """
    plugins.load()
    ctx = ir.Context(load_on_create_dialects=[])
    for name in DIALECTS:
        ctx.get_dialect_descriptor(name)
    with ctx, ir.Location.unknown():
        Migraphx.load()
    return ctx

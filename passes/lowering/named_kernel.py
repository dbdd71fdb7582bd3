"""Names of kernels, from their ops."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a, mnemonic
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.passes.analysis.kernel_ops import shape_ops
from mgx_mlir.passes.lowering import views


def kernel_ops(body: ir.Block) -> tuple[str, ...]:
    """Return the names of a kernel's ops, without constants and extents."""
    shapes = shape_ops(body)
    return tuple(mnemonic(o) for o in body.operations
                 if not is_a(o, (Yield, Literal)) and o.operation not in shapes)  # fmt: skip


def kernel_name(body: ir.Block) -> str:
    """Return the name by which listings and reports know a kernel."""
    return "_".join(o for o in kernel_ops(body) if o not in views.VIEWS) or "copy"

"""argmax and argmin as the row kernel's reductions to an index."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.reduce import ArgMax, ArgMin
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.sites import OpSite, by_form
from mgx_mlir.passes.lowering.cpu.rows.row_form import ArgExtreme, RowForm, gather, row_extents
from mgx_mlir.passes.lowering.cpu.rows.row_kernel import Plan
from mgx_mlir.passes.lowering.expr import Leaf
from mgx_mlir.passes.lowering.select import KernelRule

_TYPES = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.INT32)


def refusal(op: ArgMax | ArgMin) -> str | None:
    """Return why no vector kernel computes an argmax or argmin, None if one does."""
    t = TensorType.of(op.input)
    if t.dtype not in _TYPES:
        return f"it compares {t.dtype}"
    return "it has no elements" if 0 in t.dims else None


def build(e: LoweringContext, site: OpSite, _: None) -> list[ir.Value]:
    """Build the search for the best element of each row or column."""
    op, own = site.op, e.extents(site.first)
    t, out = TensorType.of(op.input), TensorType.of(op.out)
    axes = frozenset((axis_of(op.axis, t.rank),))
    how = "max" if is_a(op.operation, ArgMax) else "min"
    position = ArgExtreme(
        out, row_extents(own, axes), how, Leaf(t, site.first), op.select_last_index
    )
    form = RowForm(own, axes, [(position, out, False)])
    gather(e, form)
    return Plan(e, form, site.isa).run()


RULE = KernelRule("arg_extreme", (ArgMax, ArgMin), by_form(refusal), build)

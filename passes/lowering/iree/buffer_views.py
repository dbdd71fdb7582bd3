"""Tensors of run-time extents across the borders of branches and loops: as buffer views.

IREE 3.13 lays the results of dispatches out in one allocation, at offsets that it aligns, and its
range analysis of integers knows nothing of what is aligned (`util.align` leaves its range
unset): where one branch gives a tensor at offset 0, or a loop starts with one, it takes 0 to be
the offset always, and two tensors become one. It does the same to an allocation's size. A buffer
view holds offset and size itself. (A barrier hides the offset too, but what two of them hide is
freed twice.) Where all extents are static, offsets and sizes are constants, and no views are
needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.iree.iree_ops import barrier, build, index_attribute


def leave(e: LoweringContext, value: ir.Value, *, shared: bool = False) -> ir.Value:
    """Return a tensor as the view that crosses the border.

    shared: something else reads the tensor, or may. What comes of a view IREE 3.13 updates in
    place, as memory that it alone has, so such a tensor is copied first.
    """
    extents = e.extents(value)
    if shared:
        value = copied(e, value, extents)
    # one view twice in a list is null the second time; a constant's is made when the program is
    # loaded, and is null too
    value = e.barrier(value, extents)
    return build(
        "hal.tensor.export", [value, *e.dynamic_values(extents)],
        [ir.Type.parse("!hal.buffer_view")],
        attributes={"source_encoding": ir.TypeAttr.get(value.type)},
    ).result  # fmt: skip


def copied(e: LoweringContext, value: ir.Value, extents: Sequence[Extent]) -> ir.Value:
    """Return the tensor in memory of its own.

    A choice that only the run decides hides that it is a mere copy; a barrier keeps two fills with
    one number apart.
    """
    value = e.barrier(value, extents)
    zero = barrier(e.index(0))
    element = ir.RankedTensorType(value.type).element_type

    def body(where: list[ir.Value]) -> ir.Value:
        always = indices.compare(e, indices.EQ, zero, 0)
        return arith.SelectOp(always, indices.read(value, where), indices.zero_of(element)).result

    return indices.from_positions(e, extents, _element(value), body)


def _element(value: ir.Value) -> DType:
    return dtypes.from_mlir(ir.RankedTensorType(value.type).element_type)


def enter(e: LoweringContext, view: ir.Value, kind: ir.Type) -> ir.Value:
    """Return the tensor of a view; its run-time extents are what the view has."""
    t = ir.RankedTensorType(kind)
    extents = [_dim(view, axis) for axis, d in enumerate(t.shape) if d == DYN]
    return build(
        "hal.tensor.import", [view, *extents], [t], segments=(1, len(extents), 0, 0),
        attributes={"target_encoding": ir.TypeAttr.get(t)},
    ).result  # fmt: skip


def _dim(view: ir.Value, axis: int) -> ir.Value:
    at = {"index": index_attribute(axis)}
    return build("hal.buffer_view.dim", [view], [ir.IndexType.get()], attributes=at).result


def settled(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Return a tensor that a loop or a branch gave, waited for.

    Of a region that reads such a tensor, and another that was computed from it, IREE 3.13 waits
    for the first alone, and drops the computation of the second.
    """
    return enter(e, barrier(leave(e, value)), value.type)

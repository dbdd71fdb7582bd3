"""Tensors of dynamic extents across the borders of branches and loops: as buffer views.

IREE 3.13 puts the results of dispatches into one allocation, at aligned offsets. Its integer range
analysis has no range for `util.align`. Where one branch yields a tensor at offset 0, or a loop
starts with one, it assumes offset 0 always, and two tensors overlap. The same happens to an
allocation's size. A buffer view holds offset and size itself. (Barriers hide the offset too, but
two of them free the memory twice.) With static extents, offsets and sizes are constants, and no
views are needed.
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
from mgx_mlir.passes.lowering.scalar import signless


def leave(e: LoweringContext, value: ir.Value, *, shared: bool = False) -> ir.Value:
    """Return a tensor as the view that crosses the border.

    shared: the tensor may have other readers. IREE 3.13 updates a view's tensor in place, as if it
    were the only owner, so such a tensor is copied first.
    """
    extents = e.extents(value)
    if shared:
        value = copied(e, value, extents)
    # the same view twice in a list is null the second time; a constant's view is made at load, and
    # is null too
    value = e.barrier(value, extents)
    return build(
        "hal.tensor.export", [value, *e.dynamic_values(extents)],
        [ir.Type.parse("!hal.buffer_view")],
        attributes={"source_encoding": ir.TypeAttr.get(value.type)},
    ).result  # fmt: skip


def copied(e: LoweringContext, value: ir.Value, extents: Sequence[Extent]) -> ir.Value:
    """Return a copy of the tensor in new memory.

    A dynamic select keeps IREE from folding the copy; a barrier keeps two equal fills apart.
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
    """Return the tensor of a buffer view, with the view's dynamic extents."""
    t = ir.RankedTensorType(kind)
    return _imported(view, t, [_dim(view, axis) for axis, d in enumerate(t.shape) if d == DYN])


def _imported(memory: ir.Value, t: ir.RankedTensorType, extents: Sequence[ir.Value]) -> ir.Value:
    return build(
        "hal.tensor.import", [memory, *extents], [t], segments=(1, len(extents), 0, 0),
        attributes={"target_encoding": ir.TypeAttr.get(t)},
    ).result  # fmt: skip


def _dim(view: ir.Value, axis: int) -> ir.Value:
    at = {"index": index_attribute(axis)}
    return build("hal.buffer_view.dim", [view], [ir.IndexType.get()], attributes=at).result


def memory(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Return the memory of a dispatch's result on a CPU, once it is computed."""
    return build("hal.buffer_view.buffer", [leave(e, value)], [ir.Type.parse("!hal.buffer")]).result


def number(e: LoweringContext, memory: ir.Value, at: Extent) -> ir.Value:
    """Return the element of a tensor of i64 whose memory it is, on the host.

    For `tensor.extract` IREE 3.13 copies an element twice, by a command buffer of its own and two
    allocations.
    """
    read = [memory, e.index(e.mul(at, dtypes.INT64.size))]
    return build("hal.buffer.load", read, [ir.IntegerType.get_signless(64)]).result


def beginning(
    e: LoweringContext, memory: ir.Value, extents: Sequence[Extent], dtype: DType
) -> ir.Value:
    """Return a tensor of the first elements in a memory, which nothing else reads."""
    t = ir.RankedTensorType.get(e.static_dims(extents), signless(dtype))
    return _imported(memory, t, e.dynamic_values(extents))


def settled(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Wait for the result of a loop or a branch.

    In a region that reads such a tensor and another one computed from it, IREE 3.13 waits only for
    the first, and drops the computation of the second.
    """
    return enter(e, barrier(leave(e, value)), value.type)

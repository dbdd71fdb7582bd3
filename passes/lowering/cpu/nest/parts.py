"""Slices and concatenations as copies of runs, along a middle or last axis.

Elements from the axis inwards are contiguous: each line of the result is a run of one tensor, or
runs of several. Along the first axis the result is a single run, which IREE copies or aliases.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import line_step
from mgx_mlir.passes.lowering.cpu.frame.epilogue import STORED
from mgx_mlir.passes.lowering.cpu.frame.sites import OpSite, by_form
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Nest, Tile
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.ops.movement import concat_extents, slice_bounds
from mgx_mlir.passes.lowering.select import KernelRule

_LEAST_RUN = 8  # elements: shorter runs are half a vector or less, and IREE's loops as fast


def _refused_runs(t: TensorType, axis: int) -> str | None:
    """Return why runs of a tensor from an axis inwards are not copied here, None if they are."""
    if t.dtype not in STORED:
        return "it is not held by vectors"
    if 0 in t.dims:
        return "it has no elements"
    if all(d == 1 for d in t.dims[:axis]):
        return "its elements are contiguous"
    run = [d for d in t.dims[axis:] if d != DYN]
    short = len(run) == t.rank - axis and prod(run) < _LEAST_RUN
    return "its runs are short" if short else None


def _refused_slice(op: Slice) -> str | None:
    if op.input_axes is not None or len(op.axes) != 1:
        return "it has several axes, or dynamic bounds"
    t = TensorType.of(op.out)
    return _refused_runs(t, axis_of(op.axes[0], t.rank))


def _sliced(e: LoweringContext, site: OpSite, _: None) -> list[ir.Value]:
    op: Slice = site.op
    t, own = TensorType.of(op.input), e.extents(site.first)
    axis = axis_of(op.axes[0], t.rank)
    offsets, sizes = slice_bounds(e, op, own)
    inner = e.product(own[axis + 1 :])
    made = _joined(e, site, [site.first], axis, [own], [offsets[axis]], [sizes[axis]], inner, sizes)
    return [e.refine(made, TensorType.of(op.out))]


def _refused_concat(op: Concat) -> str | None:
    out = TensorType.of(op.out)
    axis = axis_of(op.axis, out.rank)
    parts = [TensorType.of(v) for v in op.operation.operands]
    if len(parts) == 1:
        return "it has one part"
    reasons = (_refused_runs(t, axis) for t in (out, *parts))
    return next((reason for reason in reasons if reason is not None), None)


def _concatenated(e: LoweringContext, site: OpSite, _: None) -> list[ir.Value]:
    op: Concat = site.op
    out, parts = TensorType.of(op.out), site.parts
    axis = axis_of(op.axis, out.rank)
    own = [e.extents(x) for x in parts]
    extents = concat_extents(e, op, own)[0]
    counts = [have[axis] for have in own]
    inner = e.product(extents[axis + 1 :])
    made = _joined(e, site, parts, axis, own, [0] * len(parts), counts, inner, extents)
    return [e.refine(made, out)]


def _joined(
    e: LoweringContext, site: OpSite, parts: Sequence[ir.Value], axis: int,
    own: Sequence[Sequence[Extent]], begins: Sequence[Extent], counts: Sequence[Extent],
    inner: Extent, extents: Sequence[Extent],
) -> ir.Value:  # fmt: skip
    """Build the tensor whose lines are a run of each part in sequence.

    begins, counts: elements of each part along the axis. inner: elements inside of the axis.
    """
    dtype = TensorType.of(site.op.out).dtype
    outer, length = e.product(extents[:axis]), e.product(extents[axis:])
    flat = [
        views.reshaped(e, x, [outer, e.mul(have[axis], inner)])
        for x, have in zip(parts, own, strict=True)
    ]

    def body(tile: Tile) -> list[ir.Value]:
        k = tile.k
        each = k.inner(inner)

        def line(row: Line) -> list[ir.Value]:
            made, to = list(row.made), 0
            for source, begin, count in zip(k.inputs, begins, counts, strict=True):
                # a last vector writes beyond its run, where the next part comes
                elements = k.mul(k.inner(count), each)
                at = k.mul(k.inner(begin), each)
                made = row.after(made).copied(
                    source, row.at, at, to=to, count=elements, registers=_REGISTERS
                )
                to = k.add(to, elements)
            return made

        return tile.lines(line)

    lanes = site.isa.lanes_of(dtype)
    nest = Nest(
        flat, [outer, length], [dtype], (line_step(outer, length),), lanes,
        [inner, *begins, *counts],
    )  # fmt: skip
    return views.reshaped(e, nest.run(body)[0], extents)


_REGISTERS = 4  # vectors of a run that are copied together

SLICE = KernelRule("slice", (Slice,), by_form(_refused_slice), _sliced)
CONCAT = KernelRule("join", (Concat,), by_form(_refused_concat), _concatenated)

__all__ = ["CONCAT", "SLICE"]

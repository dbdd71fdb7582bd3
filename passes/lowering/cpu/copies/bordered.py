"""Pads that mirror or repeat the border of an image as one CPU kernel: rows are copied by vectors.

Rows and columns are two axes next to each other, or one; what follows them, channels as a rule,
moves with them.
"""

from __future__ import annotations

from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.movement import Pad
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS, UNKNOWN, tile_size
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.select import KernelRule


def refusal(op: Pad) -> str | None:
    """Return why no kernel of our own makes this border, None if one does."""
    t = TensorType.of(op.input)
    if op.mode == "constant":
        return "it reads no border"
    if t.dtype.is_bool or 0 in t.dims:
        return "it copies bits, or there are none"
    padded = _padded(op)
    if not padded or padded[-1] - padded[0] > 1:
        return "the axes are not next to each other"
    return None


def _padded(op: Pad) -> list[int]:
    rank = len(op.pads) // 2
    return [i for i in range(rank) if op.pads[i] or op.pads[rank + i]]


def build(e: LoweringContext, op: Pad, x: ir.Value, isa: Isa) -> list[ir.Value]:
    """Build the padded tensor by copies of rows."""
    t, own, padded = TensorType.of(op.input), e.extents(x), _padded(op)
    first, last = padded[0], padded[-1]
    before, after = op.pads[: t.rank], op.pads[t.rank :]
    wanted = [e.add(d, p + q) for d, p, q in zip(own, before, after, strict=True)]
    outer, inner = e.product(own[:first]), e.product(own[last + 1 :])
    rows, above, below = own[first], before[first], after[first]
    if first == last:  # rows are whatever comes ahead
        outer, rows, above, below = 1, outer, 0, 0
    left, right = before[last], after[last]
    many, long = e.add(rows, above + below), e.mul(wanted[last], inner)
    dims, found = [outer, rows, e.mul(own[last], inner)], [outer, many, long]
    source = views.reshape_tensor(e, x, t.with_dims(e.static_dims(dims)), dims)
    step = max(1, GROUP_ELEMENTS // (long if isinstance(long, int) else UNKNOWN))
    if isinstance(many, int):
        step = min(step, many)
    lanes = max(1, isa.lanes * 4 // t.dtype.size)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        size = tile_size(k, k.at[1], step, many)
        height, width = k.inner(rows), k.inner(own[last])
        length, row_length, each = k.inner(dims[2]), k.inner(long), k.inner(inner)

        def place(at: Index, extent: Index) -> Index:
            edge = index.last_of(k, extent)
            at = index.mirrored(k, at, edge) if op.mode == "reflect" else at
            return index.clamp(k, at, 0, edge)

        def row(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            at = k.add(k.at[1], i)
            line = at if first == last else place(k.sub(at, above), height)

            def copied(
                begin: Index, to: Index, count: Index, into: list[ir.Value]
            ) -> list[ir.Value]:
                """Copy elements; those that a last vector writes beyond them come later."""

                def some(j: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
                    where = [k.at[0], line, k.add(begin, j)]
                    v = k.read(k.inputs[0], where, lanes, masked=0.0 if masked else None)
                    return [k.write(v, c[0], [0, i, k.add(to, j)], masked=masked)]

                return k.along(count, lanes, into, some)

            def column(number: Index, to: Index, into: list[ir.Value]) -> list[ir.Value]:
                begin = k.mul(place(number, width), each)
                if isinstance(each, int) and each == 1:
                    value = k.element(k.inputs[0], [k.at[0], line, begin])
                    return [k.put(value, into[0], [0, i, to])]
                return copied(begin, to, each, into)

            def whole() -> list[ir.Value]:
                made = k.loop(
                    0, left, 1, c,
                    lambda j, c: column(k.sub(j, left), k.mul(j, each), c),
                )  # fmt: skip
                made = copied(0, k.mul(left, each), length, made)
                behind = k.add(width, left)
                return k.loop(
                    0, right, 1, made,
                    lambda j, c: column(k.add(width, j), k.mul(k.add(behind, j), each), c),
                )  # fmt: skip

            if isinstance(height, int) and isinstance(width, int):
                return whole()
            # of an empty axis the border is 0
            some = arith.AndIOp(k.is_less(0, height), k.is_less(0, width)).result
            zero = index.zero_of(ir.RankedTensorType(c[0].type).element_type)
            return k.when(
                some, whole,
                lambda: k.loop(0, row_length, 1, c, lambda j, c: [k.put(zero, c[0], [0, i, j])]),
                [c[0].type],
            )  # fmt: skip

        made = k.loop(0, size, 1, [k.empty([1, size, row_length], t.dtype)], row)[0]
        return [ResultTile(made, [*k.at, 0], [1, size, row_length])]

    grid = [(outer, 1), (many, step)]
    known = [*dims, *found, own[last], inner]
    made = dispatch([source], [(found, t.dtype)], grid, body, known)[0]
    out = views.reshape_tensor(e, made, t.with_dims(e.static_dims(wanted)), wanted)
    return [e.refine(out, TensorType.of(op.out))]


RULE = KernelRule(
    "border", (Pad,), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.first, site.isa),
)  # fmt: skip

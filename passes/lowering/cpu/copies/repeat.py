"""A view that repeats each element side by side, as nearest enlargement does, as a CPU kernel."""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core.ir import ir, vector
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS, UNKNOWN, tile_size
from mgx_mlir.passes.lowering.cpu.frame.epilogue import STORED
from mgx_mlir.passes.lowering.cpu.frame.sites import ExprSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent, Leaf, View, behind_views
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

MOST = 4  # as many registers are written for each that is read


@dataclass(frozen=True)
class _Plan:
    """A view whose last dim repeats its source `times` times; kept: the source's extents, read."""

    x: View
    source: Leaf
    times: int
    kept: list[tuple[Extent, int]]


def match(e: LoweringContext, site: ExprSite) -> _Plan | Refusal:
    """Take a view whose last dim repeats 2 to 4 times what the dim before it reads.

    Dims ahead of these two are the source's, in its order, or repeat as well.
    """
    x = site.x
    if not isinstance(x, View):
        return Refusal("it is no view")
    (source, reads), rank = behind_views(x), x.type.rank
    times = x.extents[-1] if x.extents else 1
    if not isinstance(source, Leaf) or source.type.dtype not in STORED or rank < 2:
        return Refusal(f"it is computed, or {x.type} is not held by vectors")
    if not isinstance(times, int) or not 2 <= times <= MOST:
        return Refusal(f"its last dim repeats nothing 2 to {MOST} times")
    kept = [(d, i) for d, i in zip(e.extents(source.value), reads, strict=True) if i is not None]
    at = [i for _, i in kept]
    if at != sorted(set(at)) or not at or at[-1] != rank - 2 or 0 in x.extents:
        return Refusal("it is a transpose, or has no elements")
    return _Plan(x, source, times, kept)


def build(e: LoweringContext, site: ExprSite, plan: _Plan) -> list[ir.Value]:
    """Build the repeated tensor."""
    x, source, times, kept, isa = plan.x, plan.source, plan.times, plan.kept, site.isa
    lead = list(x.extents[:-2])
    rows, count = e.product(lead), x.extents[-2]
    columns = e.mul(count, times)
    flat = views.reshaped(e, source.value, [e.product([d for d, _ in kept[:-1]]), count])
    step = max(1, GROUP_ELEMENTS // (columns if isinstance(columns, int) else UNKNOWN))
    if isinstance(rows, int):
        step = min(step, rows)
    order = [i // times for i in range(isa.lanes * times)]

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        size = tile_size(k, k.at[0], step, rows)
        own, wide = k.inner(count), k.mul(k.inner(count), times)

        def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
            line = _line(k, k.add(k.at[0], r), lead, kept)

            def some(j: Index, masked: bool, into: list[ir.Value]) -> list[ir.Value]:
                v = k.read(k.inputs[0], [line, j], isa.lanes, masked=0.0 if masked else None)
                v = vector.ShuffleOp(v, v, order).result
                return [k.write(v, into[0], [r, k.mul(j, times)], masked=masked)]

            return k.along(own, isa.lanes, carried, some)

        made = k.loop(0, size, 1, [k.empty([size, wide], source.type.dtype)], row)
        return [ResultTile(made[0], [k.at[0], 0], [size, wide])]

    known = [*x.extents, *(d for d, _ in kept)]
    found = dispatch([flat], [([rows, columns], source.type.dtype)], [(rows, step)], body, known)
    return [e.refine(views.reshaped(e, found[0], x.extents), x.type)]


RULE = KernelRule("repeat", (), match, build)


def _line(
    k: WorkgroupBuilder, row: Index, lead: list[Extent], kept: list[tuple[Extent, int]]
) -> Index:
    """Return which line of the source a row of the result repeats."""
    where: list[Index] = [0] * len(lead)
    for i in reversed(range(len(lead))):
        d = k.inner(lead[i])
        where[i] = k.rem(row, d) if i else row
        row = k.div(row, d)
    line: Index = 0
    for d, i in kept[:-1]:
        line = k.add(k.mul(line, k.inner(d)), where[i])
    return line

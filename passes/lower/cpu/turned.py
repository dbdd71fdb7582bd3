"""Transposes of 32-bit elements with known extents: squares turned in registers.

A work-group makes a tile of the last dim of the result by the one along which the source's elements
are neighbours. A square reads as many rows as a register has lanes, and writes as many. The last
squares, and the last work-groups, take up places of those ahead of them: they come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import product
from mgx_mlir.passes.lower import views
from mgx_mlir.passes.lower.context import LoweringContext
from mgx_mlir.passes.lower.cpu.axis_view import GROUP_ELEMENTS
from mgx_mlir.passes.lower.cpu.elements import Elements
from mgx_mlir.passes.lower.cpu.epilogue import STORED
from mgx_mlir.passes.lower.cpu.isa import Isa
from mgx_mlir.passes.lower.cpu.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lower.expr import Expr, Extent, Leaf, behind_views

LONG = 64  # places of a work-group along the source's last dim: some lines of the cache


def lower(e: LoweringContext, x: Expr, isa: Isa) -> ir.Value | None:
    """Return a transposed tensor; None: it is something else, or the compiler's as well.

    Dims that stay next to each other count as one; up to three are left.
    """
    leaf, reads = behind_views(x)
    extents = e.expr_extents(x)
    if not isinstance(leaf, Leaf) or not isa.turns_squares:
        return None
    if leaf.type.dtype not in STORED or leaf.type.dtype.size != 4:
        return None
    at = [i for i in reads if i is not None]
    if sorted(at) != list(range(len(extents))) or len(at) != len(reads):
        return None
    if any(not isinstance(d, int) for d in extents):
        return None
    return _emit(e, leaf, at, [d for d in extents if isinstance(d, int)], isa)


def _emit(
    e: LoweringContext, leaf: Leaf, at: Sequence[int], extents: list[int], isa: Isa
) -> ir.Value | None:
    groups: list[list[int]] = []  # of the result's dims that the source has in the same order
    order = [i for i in at if extents[i] != 1]
    for i in sorted(order):
        ahead = order.index(i) - 1
        if groups and ahead >= 0 and order[ahead] == groups[-1][-1]:
            groups[-1].append(i)
        else:
            groups.append([i])
    place = {i: n for n, group in enumerate(groups) for i in group}
    source = list(dict.fromkeys(place[i] for i in order))  # the groups as the source has them
    sizes = [product(extents[i] for i in group) for group in groups]
    last, lanes = len(groups) - 1, isa.lanes
    if not 2 <= len(groups) <= 3 or source[-1] == last:
        return None
    along = source[-1]
    if sizes[last] < lanes or sizes[along] < lanes:
        return None
    steps = [1] * len(groups)
    steps[along] = min(sizes[along], LONG)
    steps[last] = min(sizes[last], max(lanes, GROUP_ELEMENTS // steps[along]))
    flat = views.reshaped(e, leaf.value, [sizes[n] for n in source])

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        first = [k.min(i, d - step) for i, d, step in zip(k.at, sizes, steps, strict=True)]
        tile = k.empty(steps, leaf.type.dtype)

        def square(i: Index, j: Index, tile: ir.Value) -> ir.Value:
            rows: list[ir.Value] = []
            for n in range(lanes):
                inside = {along: k.add(first[along], i), last: k.add(first[last], j, n)}
                rows.append(k.read(k.inputs[0], [inside.get(g, first[g]) for g in source], lanes))
            for n, row in enumerate(Elements(k, {}).rows(rows)):
                to = [k.add(i, n) if g == along else j if g == last else 0 for g in range(last + 1)]
                tile = k.write(row, tile, to)
            return tile

        def squares(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            return _overlapping(k, steps[last], lanes, carried, lambda j, c: [square(i, j, c[0])])

        made = _overlapping(k, steps[along], lanes, [tile], squares)
        return [ResultTile(made[0], first, steps)]

    grid: list[tuple[Extent, int]] = list(zip(sizes, steps, strict=True))
    (made,) = dispatch([flat], [(sizes, leaf.type.dtype)], grid, body)
    return views.reshaped(e, made, extents)


def _overlapping(
    k: WorkgroupBuilder,
    count: int,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[[Index, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """`body` at 0, step, ... of a count of at least `step`; the last one ends with the count."""
    whole = count // step * step
    found = list(carried)
    if whole == step:
        found = list(body(0, found))
    else:
        found = k.loop(0, whole, step, found, body)
    return list(body(count - step, found)) if whole != count else found

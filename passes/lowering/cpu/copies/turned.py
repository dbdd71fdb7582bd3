"""Transposes of 32, 16 and 8-bit elements with known extents: squares turned in registers.

A work-group makes a tile of the last dim of the result by the one along which the source's elements
are neighbours. A square reads as many rows as a register has lanes, one of 16 bytes where elements
are of 16 or 8 bits, and writes as many. A last dim
of fewer elements than that counts with those ahead of it. The last squares, and the last
work-groups, take up places of those ahead of them: they come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import product
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS
from mgx_mlir.passes.lowering.cpu.frame.elements import Elements
from mgx_mlir.passes.lowering.cpu.frame.epilogue import STORED
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, behind_views
from mgx_mlir.passes.lowering.select import Refusal

LONG = 256  # bytes of a work-group along the source's last dim: some lines of the cache
_HALF = 16  # bytes of a register of which narrow elements are turned


@dataclass(frozen=True)
class Plan:
    """Groups of the result's dims that the source has in the same order.

    sizes: of the groups. source: the groups in the source's order. along: the group of the
    source's neighbours. row: the first of the groups that rows of a square stand along.
    """

    leaf: Leaf
    extents: list[int]
    sizes: list[int]
    source: list[int]
    along: int
    row: int
    lanes: int


def match(e: LoweringContext, x: Expr, isa: Isa) -> Plan | Refusal:
    """Take a transpose of known extents. Dims that stay next to each other count as one."""
    leaf, reads = behind_views(x)
    extents = e.expr_extents(x)
    if not isinstance(leaf, Leaf):
        return Refusal("it is computed")
    if not isa.turns_squares:
        return Refusal("LLVM transposes as well on this CPU")
    if leaf.type.dtype not in STORED or leaf.type.dtype.size not in (1, 2, 4):
        return Refusal(f"{leaf.type.dtype} is not turned in registers")
    at = [i for i in reads if i is not None]
    if sorted(at) != list(range(len(extents))) or len(at) != len(reads):
        return Refusal("it is no transpose")
    known = [d for d in extents if isinstance(d, int)]
    if len(known) < len(extents):
        return Refusal("it has dynamic dims")
    return _planned(leaf, at, known, isa)


def _planned(leaf: Leaf, at: Sequence[int], extents: list[int], isa: Isa) -> Plan | Refusal:
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
    size = leaf.type.dtype.size
    lanes = isa.lanes if size == 4 else _HALF // size
    if len(groups) < 2 or source[-1] == len(groups) - 1:
        return Refusal("its last dim stays the last")
    along = source[-1]
    row = _row(sizes, along, lanes)
    if row is None or sizes[along] < lanes:
        return Refusal("its rows are shorter than a vector, or no multiple of one")
    return Plan(leaf, extents, sizes, source, along, row, lanes)


def build(e: LoweringContext, plan: Plan) -> ir.Value:
    """Build the transposed tensor."""
    leaf, extents, sizes, source = plan.leaf, plan.extents, plan.sizes, plan.source
    along, row, lanes = plan.along, plan.row, plan.lanes
    long = LONG // leaf.type.dtype.size
    inside = product(sizes[row + 1 :])  # neighbours in the result that share an index of `row`
    dims = [*sizes[:row], product(sizes[row:])]  # the result's
    steps = [1] * len(dims)
    steps[along] = min(sizes[along], long)
    steps[row] = min(dims[row], max(lanes, GROUP_ELEMENTS // steps[along] // lanes * lanes))
    flat = views.reshaped(e, leaf.value, [sizes[n] for n in source])
    lead = [n for n in range(row) if n != along]
    joined = len(lead) > 1  # a grid has no more than three dims

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        here = list(k.at)
        if joined:
            rest, here = here[0], [0] * row + here[2:]
            here[along] = k.at[1]
            for n in reversed(lead):
                rest, here[n] = k.div(rest, sizes[n]), k.rem(rest, sizes[n])
        first = [k.min(i, d - step) for i, d, step in zip(here, dims, steps, strict=True)]
        tile = k.empty(steps, leaf.type.dtype)

        def square(i: Index, j: Index, tile: ir.Value) -> ir.Value:
            rows: list[ir.Value] = []
            start = k.div(k.add(first[row], j), inside)
            for n in range(lanes):
                where = {**dict(enumerate(first)), along: k.add(first[along], i)}
                where[row] = k.add(start, n // inside)
                rest = n % inside
                for g in reversed(range(row + 1, len(sizes))):
                    rest, where[g] = divmod(rest, sizes[g])
                rows.append(k.read(k.inputs[0], [where[g] for g in source], lanes))
            for n, vector in enumerate(Elements(k, {}).rows(rows)):
                to = [k.add(i, n) if g == along else j if g == row else 0 for g in range(len(dims))]
                tile = k.write(vector, tile, to)
            return tile

        def squares(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            return _overlapping(k, steps[row], lanes, carried, lambda j, c: [square(i, j, c[0])])

        made = _overlapping(k, steps[along], lanes, [tile], squares)
        return [ResultTile(made[0], first, steps)]

    grid: list[tuple[Extent, int]] = list(zip(dims, steps, strict=True))
    if joined:
        grid = [(product(sizes[n] for n in lead), 1), grid[along], grid[row]]
    (made,) = dispatch([flat], [(dims, leaf.type.dtype)], grid, body)
    return views.reshaped(e, made, extents)


def _row(sizes: Sequence[int], along: int, lanes: int) -> int | None:
    """Return the first of the last groups that the rows of a square stand along, together.

    None: they are too short, or a square would end within one of them.
    """
    length = 1
    for n in reversed(range(along + 1, len(sizes))):
        if lanes % length:
            return None
        length *= sizes[n]
        if length >= lanes:
            return n
    return None


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

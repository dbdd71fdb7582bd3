"""Transposes: squares of as many rows as a register has lanes are transposed in registers.

A workgroup makes a tile of the result's last dim by the dim along which the source is contiguous.
A last dim shorter than a vector is joined with the dims before it. If all extents are static, the
last squares and tiles overlap those before them. If one is dynamic, they are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import product
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import sizes_of
from mgx_mlir.passes.lowering.cpu.frame.elements import transposed
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import DimMap, Expr, Extent, Leaf, behind_views
from mgx_mlir.passes.lowering.select import Refusal

_SQUARES = {1: 16, 2: 8, 4: 8, 8: 4}  # rows of a square at most, by the bytes of an element
_LONG = 256  # bytes of a tile along the source's last dim, all extents static: lines of the cache
_TILE = 32 << 10  # bytes of such a tile: source and result stay in the L2 cache, most of it in L1
_LINE = 64  # bytes, with a dynamic extent: one line of the cache
_ROWS = 256  # source rows of such a tile: with a cache line of each, half of the L1 cache
_Carried = list[ir.Value]
_Body = Callable[[Index, bool, _Carried], _Carried]


@dataclass(frozen=True)
class Plan:
    """A transpose of groups: neighbouring dims of the result that the source has in that order."""

    x: Expr
    leaf: Leaf
    sizes: list[Extent]  # extents of the groups, in the order of the result
    source: list[int]  # groups in the order of the source
    row: int  # first of the groups that rows of a square lie along
    lanes: int

    @property
    def along(self) -> int:
        """The group along which the source is contiguous."""
        return self.source[-1]

    @property
    def writes_on(self) -> bool:
        """Return whether neighbouring squares continue rows of the result, not of the source.

        Lines at distances of a large power of two share few sets of a cache. The side with the
        larger one is passed over line by line.
        """
        if not self.is_static:
            return False
        known = [d for d in self.sizes if isinstance(d, int)]
        place = self.source.index(self.row)
        read = product([known[n] for n in self.source[place + 1 :]])
        return _even_part(read) <= _even_part(product(known[self.along + 1 :]))

    @property
    def is_static(self) -> bool:
        """Return whether all extents are numbers."""
        return all(isinstance(d, int) for d in self.sizes)


def square(dtype: DType) -> int:
    """Return the most rows of a square of a type; 1: it is not transposed in registers."""
    return _SQUARES.get(dtype.size, 1)


def match(e: LoweringContext, x: Expr, isa: Isa) -> Plan | Refusal:
    """Take a view of a tensor whose dims are in another order.

    With a dynamic dim: [.., R, C] -> [.., C, R], where R and C are one dim or several.
    """
    leaf, reads = behind_views(x)
    extents = e.expr_extents(x)
    is_static = all(isinstance(d, int) for d in extents)
    if not isinstance(leaf, Leaf):
        return Refusal("it is computed")
    if is_static and not isa.turns_squares:
        return Refusal("LLVM transposes as well on this CPU")
    dtype = leaf.type.dtype
    if dtype.is_bool or dtype.size not in _SQUARES or (is_static and dtype.size == 8):
        return Refusal(f"{dtype} is not transposed in registers")
    groups = _groups(reads, e.extents(leaf.value), extents)
    if groups is None:
        return Refusal("it is no transpose")
    (blocks, source), lanes = groups, min(isa.lanes_of(dtype), _SQUARES[dtype.size])
    if len(blocks) < 2 or source[-1] == len(blocks) - 1:
        return Refusal("its last dim stays the last")
    sizes = [e.product([extents[i] for i in group]) for group in blocks]
    if is_static:
        known = [d for d in sizes if isinstance(d, int)]
        row = _row(known, source[-1], lanes)
        if row is None or known[source[-1]] < lanes:
            return Refusal("its rows are shorter than a vector, or no multiple of one")
        return Plan(x, leaf, sizes, source, row, lanes)
    if source not in ([1, 0], [0, 2, 1]):
        return Refusal("it does not exchange two blocks of dims")
    columns = sizes[source[-1]]
    if dtype.size < 4 and isinstance(columns, int) and columns < lanes:
        return Refusal("its rows are shorter than a vector")
    return Plan(x, leaf, sizes, source, len(sizes) - 1, lanes)


def _groups(
    reads: DimMap, own: Sequence[Extent], wanted: Sequence[Extent]
) -> tuple[list[list[int]], list[int]] | None:
    """Return the result's dims in groups, and the groups in the order of the source; else None.

    Extents of 1 are left out, wherever they are.
    """
    kept = [i for i, d in zip(reads, own, strict=True) if d != 1]
    order = [i for i in kept if i is not None]
    read = [i for i, d in enumerate(wanted) if d != 1]
    if len(order) != len(kept) or sorted(order) != read:
        return None
    groups: list[list[int]] = []
    for i in sorted(order):
        ahead = order.index(i) - 1
        if groups and ahead >= 0 and order[ahead] == groups[-1][-1]:
            groups[-1].append(i)
        else:
            groups.append([i])
    of = {i: n for n, group in enumerate(groups) for i in group}
    return groups, list(dict.fromkeys(of[i] for i in order))


def _row(sizes: Sequence[int], along: int, lanes: int) -> int | None:
    """Return the first of the last groups that form the rows of a square.

    None if they are too short, or a square would end inside of one.
    """
    length = 1
    for n in reversed(range(along + 1, len(sizes))):
        if lanes % length:
            return None
        length *= sizes[n]
        if length >= lanes:
            return n
    return None


def _even_part(n: int) -> int:
    """Return the largest power of two that divides a number."""
    return n & -n


def _even(extent: int, most: int, lanes: int) -> int:
    """Return the step of about equal tiles of whole squares, about `most` elements at most."""
    tiles = -(-extent // max(most, lanes))
    return min(extent, -(-extent // tiles // lanes) * lanes)


def build(e: LoweringContext, plan: Plan) -> ir.Value:
    """Build the transposed tensor."""
    sizes, along, row, dtype = plan.sizes, plan.along, plan.row, plan.leaf.type.dtype
    dims = [*sizes[:row], e.product(sizes[row:])]
    steps = [1] * len(dims)
    if plan.is_static:
        known = [d for d in dims if isinstance(d, int)]
        steps[along] = _even(known[along], _LONG // dtype.size, plan.lanes)
        steps[row] = _even(known[row], _TILE // dtype.size // steps[along], plan.lanes)
    else:
        steps[along], steps[row] = _LINE // dtype.size, _ROWS
    lead = [n for n in range(row) if n != along]
    grid: list[tuple[Extent, int]] = list(zip(dims, steps, strict=True))
    joined = len(lead) > 1  # a grid has no more than three dims
    if joined:
        grid = [(e.product([sizes[n] for n in lead]), 1), grid[along], grid[row]]

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        start, size = list(k.at), list[Index](steps)
        if joined:
            ahead = k.coordinates(k.at[0], [sizes[n] for n in lead])
            at = dict(zip([*lead, along, row], [*ahead, *k.at[1:]], strict=True))
            start = [at[n] for n in range(len(dims))]
        if plan.is_static:
            last = [k.sub(d, n) for d, n in zip(dims, steps, strict=True)]
            start = [k.min(i, most) for i, most in zip(start, last, strict=True)]
        else:
            size = sizes_of(k, grid)
        tile = _Tile(k, plan, start, size, k.inner(dims[row]))
        return [ResultTile(tile.run(k.empty(size, dtype)), start, size)]

    flat = views.reshaped(e, plan.leaf.value, [sizes[n] for n in plan.source])
    (made,) = dispatch([flat], [(dims, dtype)], grid, body, sizes)
    return e.refine(views.reshaped(e, made, e.expr_extents(plan.x)), plan.x.type)


@dataclass(frozen=True)
class _Tile:
    """The squares of a workgroup."""

    k: WorkgroupBuilder
    plan: Plan
    start: Sequence[Index]  # index of the tile in the result
    size: Sequence[Index]
    rows: Index  # elements of the result along the dim of a square's rows

    def run(self, tile: ir.Value) -> ir.Value:
        """Return the tile with all squares."""
        p = self.plan
        outer, inner = (p.along, p.row) if p.writes_on else (p.row, p.along)

        def some(i: Index, is_cut: bool, carried: _Carried) -> _Carried:
            def one(j: Index, also_cut: bool, c: _Carried) -> _Carried:
                return [self.square({outer: i, inner: j}, {outer: is_cut, inner: also_cut}, c[0])]

            return self.each(self.size[inner], carried, one)

        return self.each(self.size[outer], [tile], some)[0]

    def each(self, count: Index, carried: Sequence[ir.Value], body: _Body) -> _Carried:
        """`body` at steps of a square; static: the last square ends with the count."""
        k, step = self.k, self.plan.lanes
        if not self.plan.is_static or not isinstance(count, int):
            return k.along(count, step, carried, body)
        made = k.along(count // step * step, step, carried, body)
        return body(count - step, False, made) if count % step else made

    def square(self, at: dict[int, Index], is_cut: dict[int, bool], tile: ir.Value) -> ir.Value:
        """Transpose the square at an index of the tile.

        is_cut: dims along which the square reaches beyond the tile. Past the last row, that row is
        read again. Columns past the last are written to it first, then it is overwritten.
        """
        k, p = self.k, self.plan
        beside, below = is_cut[p.along], is_cut[p.row]
        behind = [d for d in p.sizes[p.row + 1 :] if isinstance(d, int)]  # none if dynamic
        inside = product(behind)
        lines: list[ir.Value] = []
        first = k.div(k.add(self.start[p.row], at[p.row]), inside)
        where = {**dict(enumerate(self.start)), p.along: k.add(self.start[p.along], at[p.along])}
        for n in range(p.lanes):
            line, rest = k.add(first, n // inside), n % inside
            where[p.row] = k.min(line, k.sub(self.rows, 1)) if below else line
            for g in reversed(range(len(behind))):
                rest, where[p.row + 1 + g] = divmod(rest, behind[g])
            lines.append(k.read(k.inputs[0], [where[g] for g in p.source], p.lanes, masked=beside))
        columns = list(enumerate(transposed(lines)))
        for n, column in reversed(columns) if beside else columns:
            to = k.add(at[p.along], n)
            if beside:
                to = k.min(to, k.sub(self.size[p.along], 1))
            spot = {p.along: to, p.row: at[p.row]}
            tile = k.write(
                column, tile, [spot.get(g, 0) for g in range(len(self.size))], masked=below
            )
        return tile

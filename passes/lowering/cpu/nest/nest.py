"""The loop nest of CPU kernels: a grid of tiles, the lines of a tile, the vectors of a line.

    def body(tile: Tile) -> list[ir.Value]:
        (x,) = tile.k.inputs
        return tile.lines(lambda line: line.copied(x, [tile.k.rem(line.at[0], 4)]))

    (made,) = Nest([x], [rows, columns], [dtypes.FLOAT], (16,), isa.lanes, [4]).run(body)

A line is a tile's elements along the last dim of the results. An access map is a function from a
line's index to the index of the source's line. It may transpose, repeat, mirror or look up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.cpu.frame.axis_view import sizes_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent

Part = Callable[[Index, int, bool], Sequence[ir.Value]]  # called with column, lanes, masked


@dataclass(frozen=True)
class Nest:
    """One dispatch, whose results have the same extents, or some of them."""

    inputs: Sequence[ir.Value]  # tensors, in the kernel `k.inputs`
    dims: Sequence[Extent]  # extents of the loops
    types: Sequence[DType]  # element types of the results
    steps: Sequence[int]  # a tile's elements along the first dims; 0, or none: all of the dim
    lanes: int  # elements of a vector
    others: Sequence[Extent] = ()  # further extents that the body needs
    kept: Sequence[Sequence[int]] = ()  # the dims that each result has; none given: all

    def run(self, body: Callable[[Tile], Sequence[ir.Value]]) -> list[ir.Value]:
        """Build the dispatch; `body` returns the tiles of the results."""
        on_grid = [i for i, step in enumerate(self.steps) if step]
        grid = [(self.dims[i], self.steps[i]) for i in on_grid]
        kept = self.kept or [range(len(self.dims))] * len(self.types)

        def group(k: WorkgroupBuilder) -> list[ResultTile]:
            start: list[Index] = [0] * len(self.dims)
            size = [1 if i in on_grid else k.inner(d) for i, d in enumerate(self.dims)]
            for i, at, n in zip(on_grid, k.at, sizes_of(k, grid), strict=True):
                start[i], size[i] = at, n
            sizes = [[size[i] for i in own] for own in kept]
            empty = [k.empty(n, t) for n, t in zip(sizes, self.types, strict=True)]
            made = body(Tile(k, self.lanes, start, size, empty))
            starts = [[start[i] for i in own] for own in kept]
            return [ResultTile(*tile) for tile in zip(made, starts, sizes, strict=True)]

        results = [([self.dims[i] for i in n], t) for n, t in zip(kept, self.types, strict=True)]
        return dispatch(self.inputs, results, grid, group, [*self.dims, *self.others])


@dataclass(frozen=True)
class Tile:
    """The part of the results that a workgroup makes."""

    k: WorkgroupBuilder
    lanes: int
    start: Sequence[Index]  # index of its first element in the results
    size: Sequence[Index]
    made: Sequence[ir.Value]  # a tensor for each result

    def lines(self, line: Callable[[Line], Sequence[ir.Value]]) -> list[ir.Value]:
        """Return the tensors with every line as `line` makes it."""
        return self._over([], list(self.made), line)

    def _over(
        self, local: list[Index], made: list[ir.Value], line: Callable[[Line], Sequence[ir.Value]]
    ) -> list[ir.Value]:
        k, i = self.k, len(local)
        if i == len(self.size) - 1:
            at = [k.add(s, j) for s, j in zip(self.start, local, strict=False)]
            return list(line(Line(k, self, at, local, made)))
        size = self.size[i]
        if isinstance(size, int) and size == 1:
            return self._over([*local, 0], made, line)
        return k.loop(0, size, 1, made, lambda j, c: self._over([*local, j], c, line))


@dataclass(frozen=True)
class Line:
    """One line of a tile; each method returns the tile's tensors with more of the line written."""

    k: WorkgroupBuilder
    tile: Tile
    at: Sequence[Index]  # index in the results, without the last dim
    local: Sequence[Index]  # index in the tile, without the last dim
    made: Sequence[ir.Value] = field(default_factory=list[ir.Value])

    @property
    def length(self) -> Index:
        """Elements of the line."""
        return self.tile.size[-1]

    def after(self, made: Sequence[ir.Value]) -> Line:
        """Return the line with the tensors that have been written so far."""
        return replace(self, made=made)

    def write(self, values: Sequence[ir.Value], j: Index, *, masked: bool) -> list[ir.Value]:
        """Write a vector of each result at column `j` of the line."""
        at = [*self.local, j]
        return [
            self.k.write(v, into, at, masked=masked)
            for v, into in zip(values, self.made, strict=True)
        ]

    def vectors(
        self, part: Part, *, to: Index = 0, count: Index | None = None, registers: int = 1
    ) -> list[ir.Value]:
        """Write `part(j, lanes, masked)`, a vector of each result, for `count` columns from `to`.

        registers: vectors that are computed together. A last vector that is masked may write
        beyond the columns, up to the end of the line.
        """
        k, lanes = self.k, self.tile.lanes
        count = self.length if count is None else count

        def some(j: Index, lanes: int, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            return self.after(c).write(part(j, lanes, masked), k.add(to, j), masked=masked)

        return k.sweep(count, lanes * registers, lanes, self.made, some)

    def copied(
        self, source: ir.Value, where: Sequence[Index], begin: Index = 0, *, to: Index = 0,
        count: Index | None = None, registers: int = 1,
    ) -> list[ir.Value]:  # fmt: skip
        """Copy elements from `begin` on of the source's line `where`."""
        k = self.k

        def part(j: Index, lanes: int, masked: bool) -> list[ir.Value]:
            return [k.read(source, [*where, k.add(begin, j)], lanes, masked=masked)]

        return self.vectors(part, to=to, count=count, registers=registers)

    def filled(self, value: ir.Value) -> list[ir.Value]:
        """Write one element everywhere."""
        whole = self.k.broadcast(value, self.tile.lanes)
        return self.vectors(lambda j, lanes, masked: [whole])

    def unless_empty(
        self, extents: Sequence[Index], make: Callable[[], Sequence[ir.Value]]
    ) -> list[ir.Value]:
        """Return the tensors that `make` writes, or zeros where one of the extents is 0 at run
        time.
        """
        k = self.k
        dynamic: list[Index] = [d for d in extents if not isinstance(d, int)]
        if not dynamic:
            return list(make())
        zero = index.zero_of(ir.RankedTensorType(self.made[0].type).element_type)
        least = dynamic[0]
        for d in dynamic[1:]:
            least = k.min(least, d)
        kinds = [v.type for v in self.made]
        return k.when(k.is_less(0, least), make, lambda: self.filled(zero), kinds)

"""The parts of a matmul kernel: a reader of A, a panel of B, and the stores of sums.

A tile is some rows of A by one panel of B. Its sums stay in registers over the depth:

    sums = multiplied(k, panel, reader, zeros)
    made = Stores(k, epilogue, tensors).stored(sums, spots, made)

A panel has groups of neighbours along the depth, as an instruction multiplies them, for each of
its columns. A reader has loops over the depth, outermost first; one iteration of the innermost
loop is one group. Iterations count the groups of a panel in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.filling import Packing
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.instructions import Multiply, products, unit_of

Tiles = list[ir.Value]
Group = Callable[[Index, bool], Iterable[ir.Value]]  # group's number, masked -> A of each row


class Reader(Protocol):
    """The rows of A in one tile."""

    @property
    def loops(self) -> Sequence[tuple[Index, Index]]:
        """Loops over the depth, outermost first: (iterations, elements of A between two of them).

        An iteration of the innermost loop is a group.
        """
        ...

    @property
    def rest(self) -> Index:
        """Elements of a last partial group, after a single loop; 0 for none."""
        ...

    @property
    def start(self) -> Index:
        """Element where the loops start: of each row, or of A."""
        ...

    def values(self, at: Index, *, masked: bool) -> Iterable[ir.Value]:
        """Yield the neighbours of each row from an element on; masked: those of the rest."""
        ...


@dataclass(frozen=True)
class Panel:
    """One panel of B, for code that reads its groups in order."""

    k: WorkgroupBuilder
    source: ir.Value  # tensor [.., group, neighbours of each column]
    at: tuple[Index, ...]  # index of the panel in the dims of `source` ahead of groups
    size: int  # elements of a register
    vectors: int  # registers of a group
    multiply: Multiply

    def columns(self, group: Index) -> list[ir.Value]:
        """Return the registers of a group."""
        at = [*self.at, group]
        registers = range(0, self.vectors * self.size, self.size)
        return [self.k.read(self.source, [*at, j], self.size) for j in registers]

    def begun(self, sums: Tiles) -> Tiles:
        """Return the sums of some rows with the terms of the panel that do not depend on A."""
        return sums

    def step(self, read: Group, number: Index, group: Index, sums: Tiles, masked: bool) -> Tiles:
        """Return the sums with one group; number: the argument of `read` for it."""
        columns, out, n = self.columns(group), Tiles(), self.vectors
        for i, x in enumerate(read(number, masked)):
            out += self.multiply(x, columns, sums[i * n : (i + 1) * n])
        return out

    def added(self, segment: Index, count: Index, read: Group, sums: Tiles) -> Tiles:
        """Return the sums with a segment: `count` groups, from number segment * count on."""
        k, first = self.k, self.k.mul(segment, count)
        return k.each(
            0, count, 1, sums, lambda g, c: self.step(read, g, k.add(first, g), c, masked=False)
        )


def multiplied(
    k: WorkgroupBuilder, panel: Panel, reader: Reader, sums: Sequence[ir.Value], segment: Index = 0
) -> Tiles:
    """Return the sums of a tile after all loops of its reader.

    sums: by row and register. segment: number of the first segment, in segments of the innermost
    loop's groups.
    """
    *outer, (count, apart) = reader.loops

    def read_from(at: Index) -> Group:
        return lambda g, masked: reader.values(k.add(at, k.mul(g, apart)), masked=masked)

    def nest(level: int, at: Index, segment: Index, sums: Tiles) -> Tiles:
        if level == len(outer):
            return panel.added(segment, count, read_from(at), sums)
        n, stride = outer[level]

        def one(i: Index, sums: Tiles) -> Tiles:
            return nest(level + 1, k.add(at, k.mul(i, stride)), k.add(k.mul(segment, n), i), sums)

        return k.each(0, n, 1, sums, one)

    made = nest(0, reader.start, segment, panel.begun(list(sums)))
    rest = reader.rest

    def last() -> Tiles:
        return panel.step(read_from(reader.start), count, count, made, masked=True)

    if isinstance(rest, int):
        return last() if rest else made
    return k.when(k.is_less(0, rest), last, lambda: made, [v.type for v in made])


# ---- sums -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """A depth that is multiplied in parts; a tensor keeps the sums between them."""

    at: Index  # index of the current part
    step: int
    end: Index

    def over(
        self, k: WorkgroupBuilder, zero: Tiles, spots: Sequence[tuple[Sequence[Index], bool]],
        tiles: Tiles, make: Callable[[Tiles], Tiles], finish: Callable[[Tiles, Tiles], Tiles],
    ) -> Tiles:  # fmt: skip
        """Make one tile; the first of `tiles` keeps its sums, at `spots` (index, masked).

        make(sums): the sums with the current part added. finish(sums, tiles): the tiles of the last
        part.
        """
        lanes = ir.VectorType(zero[0].type).shape[0]

        def kept() -> Tiles:
            return [
                k.read(tiles[0], at, lanes, masked=0.0 if masked else None) for at, masked in spots
            ]

        first = k.is_equal(self.at, 0)
        sums = make(k.when(first, lambda: zero, kept, [v.type for v in zero]))

        def keep() -> Tiles:
            out = tiles[0]
            for (at, masked), total in zip(spots, sums, strict=True):
                out = k.write(total, out, at, masked=masked)
            return [out, *tiles[1:]]

        more = k.is_less(k.add(self.at, self.step), self.end)
        return k.when(more, keep, lambda: finish(sums, tiles), [t.type for t in tiles])


def walk(
    k: WorkgroupBuilder, count: Index, most: int, tiles: Tiles,
    tile: Callable[[Index, int, Tiles], Tiles], *, even: bool = True,
) -> Tiles:  # fmt: skip
    """Build `tile(start, size, tiles)` over [0, count), in tiles of `most` rows and less.

    even: a static count is split into tiles of about equal size; else into full ones and a
    remainder. The remainder of a dynamic count is split into halves.
    """
    at: Index = 0
    size = most
    if isinstance(count, int) and even:
        number = -(-count // most)
        size = -(-count // max(1, number))  # rows of tall tiles; others have a row less
        tall = number - (number * size - count)
        tiles = k.each(0, tall * size, size, tiles, lambda r, c, n=size: tile(r, n, c))
        at, size = tall * size, size - 1
    while size:
        stop = k.add(at, k.mul(k.div(k.sub(count, at), size), size))
        tiles = k.each(at, stop, size, tiles, lambda r, c, n=size: tile(r, n, c))
        at, size = stop, 1 << (size - 1).bit_length() >> 1
        if isinstance(count, int) and isinstance(at, int):
            size = count - at
    return tiles


# ---- constant B -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Panels:
    """The layout of a constant B: [panel, group, neighbours of each of `width` columns]."""

    isa: Isa
    dtype: DType  # type of A, as it is multiplied
    width: int  # columns of a panel

    @property
    def unit(self) -> int:
        """Neighbours of a group."""
        return unit_of(self.isa, self.dtype)

    @property
    def key(self) -> tuple[object, ...]:
        """Facts that the layout depends on."""
        return ("panels", self.width, self.unit)

    def packed(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix [depth, columns] as panels."""
        return pack(matrix, self.width, self.unit)

    def packing(
        self, shape: tuple[int, ...], dtype: np.dtype, matrix: Callable[[], np.ndarray]
    ) -> Packing | np.ndarray:
        """Return a function that writes `packed` of a matrix of this shape and type, or
        `packed` itself.
        """
        return packing(shape, dtype, matrix, self.width, self.unit)

    def panel(self, k: WorkgroupBuilder, w: ir.Value, number: Index) -> Panel:
        """Return one panel of `packed`."""
        size, multiply = self.unit * self.isa.lanes, products(k, self.isa, self.dtype)
        return Panel(k, w, (number,), size, self.width // self.isa.lanes, multiply)


def pack(weights: np.ndarray, width: int, unit: int = 1) -> np.ndarray:
    """Weights [K, N] in the order in which they are read, [panel, K, width], filled up with 0.

    unit: neighbours along the depth that are read together, [panel, K / unit, width * unit]; the
    depth is filled up with 0 as well.
    """
    return packing(weights.shape, weights.dtype, lambda: weights, width, unit).array()


def packing(
    shape: tuple[int, ...],
    dtype: np.dtype,
    weights: Callable[[], np.ndarray],
    width: int,
    unit: int,
    multiples: tuple[int, int] = (1, 1),
) -> Packing:
    """Return a function that writes `pack` of weights of this shape and type.

    multiples: of panels, and of units, that there are; the last ones are filled up with 0.
    """
    (depth, columns), whole = shape, shape[0] // unit
    many, deep = multiples
    count = -(-columns // (width * many)) * many
    units, panels = -(-depth // (unit * deep)) * deep, columns // width

    def fill(found: np.ndarray) -> None:
        given, out = weights(), found.reshape(count, units, width, unit)
        # in one numpy call, which releases the GIL, without temporaries of the weights' size
        block = given[: whole * unit, : panels * width].reshape(whole, unit, panels, width)
        out[:panels, :whole] = block.transpose(2, 0, 3, 1)
        if panels < count:
            n = columns - panels * width
            out[panels + 1 :] = 0
            block = given[: whole * unit, panels * width :].reshape(whole, unit, n)
            out[panels, :whole, :n] = block.transpose(0, 2, 1)
            out[panels, :, n:] = 0
        if whole < units:
            out[:, whole:] = 0
            rest = given[whole * unit :]
            for at, start in enumerate(range(0, columns, width)):
                block = rest[:, start : start + width]
                out[at, whole, : block.shape[1], : len(rest)] = block.T

    return Packing((count, units, width * unit), dtype, fill)

"""Scatters on GPUs: the last update of each element, by which all lanes may write at once.

Updates of one element are applied in sequence, which IREE's scatter leaves to one lane. Here each
update looks through those that may go where it goes. If it is the last of them it brings what they
come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.hardware.chips import amd_chip
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.matmul.compilation_info import threads_attribute
from mgx_mlir.passes.lowering.gpu.scans import folded
from mgx_mlir.passes.lowering.scalar import Number, constant


@dataclass(frozen=True)
class Updates:
    """Updates of which some may go to one element.

    Those that may are `count` updates, each `stride` behind the one before it.
    """

    where: ir.Value  # i64 tuples, inside of what they go to
    mask: ir.Value | None  # updates that are done
    columns: Sequence[int]  # parts of the tuples in which two updates may differ
    count: Extent
    stride: Extent

    def fold(
        self,
        e: LoweringContext,
        number: ir.Value,
        start: ir.Value,
        step: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
        *,
        later: bool,
    ) -> ir.Value:
        """Return the last total of `step(other, meets, total)` over updates behind `number`, or
        over it and those ahead of it; meets: whether the other goes where this one goes."""
        own = e.rem(e.div(number, e.max(self.stride, 1)), e.max(self.count, 1))
        first = e.sub(number, e.mul(own, self.stride))
        mine = [index.read(self.where, [number, e.index(c)]) for c in self.columns]

        def each(at: ir.Value, inside: ir.Value, total: ir.Value) -> ir.Value:
            other = e.index(e.add(first, e.mul(at, self.stride)))
            meets = inside
            if self.mask is not None:
                meets = arith.AndIOp(meets, index.read(self.mask, [other])).result
            for c, value in zip(self.columns, mine, strict=True):
                theirs = index.read(self.where, [other, e.index(c)])
                equal = arith.CmpIOp(index.EQ, theirs, value).result
                meets = arith.AndIOp(meets, equal).result
            return step(other, meets, total)

        begin, end = (e.add(own, 1), self.count) if later else (0, e.add(own, 1))
        return folded(e, begin, end, start, each)

    def are_last(self, e: LoweringContext, total: Extent) -> ir.Value:
        """Return a mask of `total`: updates that are done, with no later one of their element."""

        def last(at: list[ir.Value]) -> ir.Value:
            own = index.true() if self.mask is None else index.read(self.mask, at)
            # a number: a mask that a loop carries begins as what is undefined in lanes that are off
            none, some = (constant(n, dtypes.INT32).value for n in (0, 1))

            def unless(_: ir.Value, meets: ir.Value, so_far: ir.Value) -> ir.Value:
                return arith.SelectOp(meets, none, so_far).result

            start = arith.SelectOp(own, some, none).result
            found = self.fold(e, at[0], start, unless, later=True)
            return arith.CmpIOp(index.NE, found, none).result

        return index.from_positions_alone(e, [total], dtypes.BOOL, last)

    def combined(
        self,
        e: LoweringContext,
        updates: ir.Value,
        dtype: DType,
        neutral: Number,
        body: Callable[[ir.Value, ir.Value], ir.Value],
    ) -> ir.Value:
        """Return for each update what it and those ahead of it, of its element, come to."""

        def together(at: list[ir.Value]) -> ir.Value:
            def step(other: ir.Value, meets: ir.Value, total: ir.Value) -> ir.Value:
                value = index.read(updates, [other, *at[1:]])
                return arith.SelectOp(meets, body(value, total), total).result

            return self.fold(e, at[0], constant(neutral, dtype).value, step, later=False)

        return index.from_positions_alone(e, e.extents(updates), dtype, together)


def threads_of_updates(arch: str, dims: Sequence[int]) -> ir.Attribute | None:
    """Return how threads share updates of these dims, the rest of each being a slice.

    Threads have neighbouring elements of a slice, and the rest of them other slices: IREE gives
    threads of their own to elements of slices alone. None of NVIDIA's chips, and of unknown ones.
    """
    chip = amd_chip(arch)
    if chip is None:
        return None
    one, last = [1] * len(dims), dims[-1] if len(dims) > 1 else 1
    along = chip.lanes if last == DYN else min(chip.lanes, 1 << (max(last, 1).bit_length() - 1))
    size = [*one]
    size[-1] = along
    size[0] *= chip.lanes // along if len(dims) > 1 else chip.lanes
    return threads_attribute(chip, chip.lanes, one, size)

"""A computed second operand of 8-bit integers: how a work-group packs it, and sums of products.

The scratch holds [group, unit neighbours along the depth of each column of a panel], as panels of
constant weights do. Behind the groups stand, as i32, what sums begin with where the instruction
wants the other sign of the first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    WorkgroupBuilder,
)
from mgx_mlir.passes.lowering.cpu.matmul.dot_instructions import (
    byte_products,
    byte_shift,
    byte_unit,
)

Read = Callable[[Index, Index], ir.Value]  # (depth, column) -> the vector along the columns


class ByteOperand:
    """The packing of panels of `width` columns, `block` of the depth at a time."""

    def __init__(self, k: WorkgroupBuilder, isa: Isa, width: int, block: int, *, signed: bool):
        self.k, self.isa, self.signed = k, isa, signed
        self.vectors = width // isa.lanes
        self.unit = byte_unit(isa)
        self.size = self.unit * isa.lanes
        self.groups = block // self.unit

    @staticmethod
    def room(isa: Isa, width: int) -> int:
        """Return the depth that the scratch has room for, a multiple of `unit`."""
        unit = byte_unit(isa)
        return (SCRATCH_BYTES // (width * unit) - 1) * unit

    @property
    def shape(self) -> tuple[int, int]:
        """The dims of the scratch."""
        return self.groups + 1, self.vectors * self.size

    def packed(self, read: Read, count: Index, into: ir.Value) -> ir.Value:
        """Return the scratch with `count` of the depth, filled up to whole groups.

        Past the end the last row is read again, which is multiplied by 0.
        """
        k, lanes = self.k, self.isa.lanes
        shift = byte_shift(self.isa, signed=self.signed)
        kind = k.vector_type(lanes, dtypes.INT32)
        ones = k.splat(1, self.size, dtypes.INT8)
        none = [k.splat(0, lanes, dtypes.INT32)] * (self.vectors if shift else 0)
        last = k.sub(count, 1)

        def group(d: Index, ragged: bool, carried: list[ir.Value]) -> list[ir.Value]:
            out, totals = carried[0], list(carried[1:])
            at = [k.add(d, i) for i in range(self.unit)]
            at = [k.min(i, last) for i in at] if ragged else at
            for j in range(self.vectors):
                found = _neighbours([read(i, j * lanes) for i in at])
                out = k.write(found, out, [k.div(d, self.unit), j * self.size])
                if shift:
                    totals[j] = k.intrinsic(self.isa.byte_dot, kind, totals[j], ones, found)
            return [out, *totals]

        out, *totals = k.along(count, self.unit, [into, *none], group)
        bytes_of = k.vector_type(self.size, dtypes.INT8)
        for j, total in enumerate(totals):
            start = arith.MulIOp(total, k.splat(-shift, lanes, dtypes.INT32)).result
            start = vector.BitCastOp(bytes_of, start).result
            out = k.write(start, out, [self.groups, j * self.size])
        return out

    def sums(
        self, scratch: ir.Value, neighbours: Callable[[Index, bool], Sequence[ir.Value]],
        count: Index, init: Sequence[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the sums of some rows with the products of what is packed.

        neighbours(d, masked): those of each row from the depth `d` on, 0 past the end.
        """
        k, lanes = self.k, self.isa.lanes
        sums = list(init)
        if byte_shift(self.isa, signed=self.signed):
            kind = k.vector_type(lanes, dtypes.INT32)
            starts = [
                vector.BitCastOp(kind, k.read(scratch, [self.groups, j * self.size], self.size))
                for j in range(self.vectors)
            ]
            sums = [
                arith.AddIOp(v, starts[i % self.vectors].result).result for i, v in enumerate(sums)
            ]
        multiply = byte_products(k, self.isa, signed=self.signed)

        def step(d: Index, ragged: bool, sums: list[ir.Value]) -> list[ir.Value]:
            at = k.div(d, self.unit)
            columns = [k.read(scratch, [at, j * self.size], self.size) for j in range(self.vectors)]
            out: list[ir.Value] = []
            for i, x in enumerate(neighbours(d, ragged)):
                out += multiply(x, columns, sums[i * self.vectors : (i + 1) * self.vectors])
            return out

        return k.along(count, self.unit, sums, step)


def _neighbours(rows: Sequence[ir.Value]) -> ir.Value:
    """Return rows of bytes with those of each column next to each other."""
    found = list(rows)
    while len(found) > 1:
        half = len(found) // 2
        found = [_interleaved(a, b) for a, b in zip(found[:half], found[half:], strict=True)]
    return found[0]


def _interleaved(a: ir.Value, b: ir.Value) -> ir.Value:
    count = ir.VectorType(a.type).shape[0]
    order = [i // 2 + i % 2 * count for i in range(2 * count)]
    return vector.ShuffleOp(a, b, order).result

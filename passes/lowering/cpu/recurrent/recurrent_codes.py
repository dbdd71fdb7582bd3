"""States of a recurrent network in 8 bits: their codes, and the matmul of codes with R."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.exponential import MAGIC
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.instructions import (
    byte_products,
    byte_shift,
    byte_unit,
)
from mgx_mlir.passes.lowering.scalar import TypedScalar

Vector = ir.Value
Column = tuple[Index, bool]  # first row of a register of R, and a flag: it reaches past the rows


def pack_bytes(packed: np.ndarray, lanes: int, unit: int) -> np.ndarray:
    """Return whole numbers {directions, registers, hidden, gates lanes} as i8, neighbours together.

    {directions, registers, hidden / unit, gates lanes unit}: as many of one row of R as an
    instruction multiplies stand side by side.
    """
    d, count, hidden, wide = packed.shape
    groups = -(-hidden // unit)
    filled = np.zeros((d, count, groups * unit, wide), np.int8)
    filled[:, :, :hidden] = packed
    parts = filled.reshape(d, count, groups, unit, wide).swapaxes(3, 4)
    return np.ascontiguousarray(parts).reshape(d, count, groups, wide * unit)


class StateCodes:
    """The codes of one step: 256 over the range of all rows of a direction, 0 in it.

    With i8 R (`totals` is given) they are u8, else whole numbers in f32 that are 0 for 0.
    """

    def __init__(
        self, k: WorkgroupBuilder, isa: Isa, hidden: int, inputs: dict[str, ir.Value]
    ) -> None:
        self.k, self.isa, self.lanes, self.hidden, self.inputs = k, isa, isa.lanes, hidden, inputs
        self.direction = k.at[0]
        self.bytes = "totals" in inputs
        self.step: Vector | None = None
        self.zero: Vector | None = None  # the code of 0, i32

    def of_states(self, states: ir.Value, codes: ir.Value, rows: Index) -> ir.Value:
        """Return `codes` after writing the codes of the states."""
        k, lanes = self.k, self.lanes
        wide = -(-self.hidden // lanes) * lanes
        zero, most, magic = k.splat(0.0, lanes), k.splat(255.0, lanes), k.splat(MAGIC, lanes)
        words = k.vector_type(lanes, dtypes.INT32)

        def over(
            values: list[ir.Value], body: Callable[[list[Index], list[ir.Value]], list[ir.Value]]
        ) -> list[ir.Value]:
            def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
                return k.loop(0, wide, lanes, carried, lambda j, c: body([0, i, j], c))

            return k.loop(0, rows, 1, values, row)

        def widened(at: list[Index], held: list[ir.Value]) -> list[ir.Value]:
            x = k.read(states, at, lanes)
            kept = [arith.CmpFOp(4, x, held[0]).result, arith.CmpFOp(2, x, held[1]).result]
            return [arith.SelectOp(c, x, old).result for c, old in zip(kept, held, strict=True)]

        def rounded(x: Vector) -> Vector:
            return arith.SubFOp(arith.AddFOp(x, magic).result, magic).result

        low, high = over([zero, zero], widened)
        low = k.broadcast(k.reduce(low, "minnumf"), lanes)
        high = k.broadcast(k.reduce(high, "maxnumf"), lanes)
        step = arith.DivFOp(arith.SubFOp(high, low).result, most).result
        some = arith.CmpFOp(2, step, zero).result  # ogt
        step = arith.SelectOp(some, step, k.splat(1.0, lanes)).result
        least = rounded(arith.DivFOp(low, step).result)
        greatest = arith.AddFOp(least, most).result
        # the low bits of the sum with MAGIC are the integer
        bits = arith.BitcastOp(words, arith.SubFOp(magic, least).result).result
        self.zero = arith.AndIOp(bits, k.splat(255, lanes, dtypes.INT32)).result
        self.step = step

        def coded(at: list[Index], held: list[ir.Value]) -> list[ir.Value]:
            x = rounded(arith.DivFOp(k.read(states, at, lanes), step).result)
            x = arith.SelectOp(arith.CmpFOp(3, x, least).result, x, least).result  # also of NaN
            x = arith.SelectOp(arith.CmpFOp(2, x, greatest).result, greatest, x).result
            if self.bytes:
                x = arith.AddFOp(arith.SubFOp(x, least).result, magic).result
                word = arith.BitcastOp(words, x).result
                x = arith.TruncIOp(k.vector_type(lanes, dtypes.INT8), word).result
            return [k.write(x, held[0], at)]

        return over([codes], coded)[0]

    def products(
        self, codes: ir.Value, rows: Sequence[list[Index]], position: tuple[Index, int],
        columns: Sequence[Column],
    ) -> list[Vector]:  # fmt: skip
        """Multiply some rows of codes with i8 R; return sums by row, register and gate.

        position: the first register of hidden units and how many. columns: of each sum of a row.
        """
        k, lanes, unit, (p, count) = self.k, self.lanes, byte_unit(self.isa), position
        multiply, wide = byte_products(k, self.isa, signed=False), unit * lanes
        gates, number = len(columns) // count, len(columns)

        def depth(d: Index, sums: list[ir.Value]) -> list[ir.Value]:
            weights = [
                k.read(self.inputs["r0"], [self.direction, k.add(p, j), d, g * wide], wide)
                for j in range(count)
                for g in range(gates)
            ]
            out: list[ir.Value] = []
            for i, (*outer, first) in enumerate(rows):
                at = [*outer, k.add(first, k.mul(d, unit))]
                out += multiply(k.read(codes, at, unit), weights, sums[i * number :][:number])
            return out

        none = [k.splat(0, lanes, dtypes.INT32)] * (len(rows) * number)
        sums = k.loop(0, -(-self.hidden // unit), 1, none, depth)
        assert self.zero is not None
        out: list[Vector] = []
        totals = [self.read("totals", c) for c in columns]
        zero, shift = self.zero, byte_shift(self.isa, signed=False)
        if shift:  # the codes included that offset
            zero = arith.AddIOp(zero, k.splat(shift, lanes, dtypes.INT32)).result
        less = [arith.MulIOp(zero, t).result for t in totals] * len(rows)
        for total, x in zip(sums, less, strict=True):
            exact = arith.SubIOp(total, x).result
            out.append(arith.SIToFPOp(k.vector_type(lanes), exact).result)
        return out

    def scaled(
        self, sums: Sequence[Vector], columns: Sequence[Column], shares: Sequence[Vector]
    ) -> list[Vector]:
        """Scale integer sums to floats, and add them to the shares of the inputs."""
        assert self.step is not None
        scales = [arith.MulFOp(self.step, self.read("scale", c)).result for c in columns]
        return [
            arith.AddFOp(arith.MulFOp(x, scales[i % len(scales)]).result, shares[i]).result
            for i, x in enumerate(sums)
        ]

    def read(self, name: str, column: Column) -> Vector:
        """Return a register of an input that R's rows have one number of each, f32 or i32."""
        k, (first, masked) = self.k, column
        source = self.inputs[name]
        found = k.read(source, [self.direction, first], self.lanes, masked=0.0 if masked else None)
        dtype = dtypes.from_mlir(ir.RankedTensorType(source.type).element_type)
        return widen(k, TypedScalar(found, dtype), self.lanes).value if dtype.is_float else found

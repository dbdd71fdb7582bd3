"""Combiners of reductions: the vectors that they hold in registers, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.scalars import VectorScalars
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    Number,
    TypedScalar,
    constant,
    constant_of,
)

_SIGN = 0x7FFFFFFF  # all bits of an f32 but its sign
_INFINITY = 0x7F800000  # bits above these are a NaN's


class Accumulator:
    """One reduction's running vectors; how: add, mean, mul, max, min, or peak.

    `max` and `min` of floats use instructions that drop NaN. So the largest bit pattern is tracked
    too, as a NaN's is above infinity's. `peak` omits that.
    """

    def __init__(self, k: WorkgroupBuilder, how: str, dtype: DType) -> None:
        self.k, self.dtype = k, dtype
        self.exact = dtype.is_float and how in ("max", "min")
        self.how = {"mean": "add", "peak": "max"}.get(how, how)
        self.size = 2 if self.exact else 1

    @property
    def neutral(self) -> Number:
        if self.how in ("add", "mul"):
            return 0 if self.how == "add" else 1
        return self.dtype.lowest() if self.how == "max" else self.dtype.highest()

    def start(self, lanes: int) -> list[ir.Value]:
        """Return the vectors to begin with."""
        first = self.k.splat(self.neutral, lanes, self.dtype)
        return [first, self.k.splat(0, lanes, dtypes.INT32)] if self.exact else [first]

    def add(
        self, held: Sequence[ir.Value], x: ir.Value, mask: ir.Value | None = None, at: Index = 0,
        *, across: bool = True,
    ) -> list[ir.Value]:  # fmt: skip
        """Return the running vectors with one more: the elements from index `at` on.

        mask: other lanes do not change the total. across: each lane has its own index.
        """
        lanes = ir.VectorType(x.type).shape[0]
        if mask is not None:
            none = self.k.splat(self.neutral, lanes, self.dtype)
            x = arith.SelectOp(mask, x, none).result
        made = [self._combined(held[0], x, lanes)]
        if self.exact:
            bits = arith.BitcastOp(self.k.vector_type(lanes, dtypes.INT32), x).result
            plain = arith.AndIOp(bits, self.k.splat(_SIGN, lanes, dtypes.INT32)).result
            made.append(arith.MaxSIOp(held[1], plain).result)
        return made

    def _combined(self, a: ir.Value, x: ir.Value, lanes: int) -> ir.Value:
        b = (
            VectorScalars(self.k, lanes, self.dtype, self.dtype)
            if lanes
            else ArithScalars(self.dtype, self.dtype)
        )
        left, right = TypedScalar(a, self.dtype), TypedScalar(x, self.dtype)
        if self.dtype.is_float and self.how in ("max", "min"):
            # the form of one instruction
            first = b.cmp("gt" if self.how == "max" else "lt", right, left)
            return b.select(first, right, left).value
        return getattr(b, self.how)(left, right).value

    def total(self, held: Sequence[Sequence[ir.Value]], *, across: bool) -> TypedScalar:
        """Return the total of running vectors of several widths; across: of all their lanes."""
        parts = [list(h) for h in held]
        if not across:
            return self._ended(parts[0], ir.VectorType(parts[0][0].type).shape[0])
        least = min(ir.VectorType(p[0].type).shape[0] for p in parts)
        folded = [self._folded(p, least) for p in parts]
        whole = folded[0]
        for p in folded[1:]:
            whole = self._joined(whole, p, least)
        return self._ended(self._single(whole), 0)

    def _single(self, held: list[ir.Value]) -> list[ir.Value]:
        """Return running vectors as scalars."""
        if self.dtype.is_float and self.how in ("max", "min"):
            # the same comparison, as LLVM's reductions would test for NaN again
            return [vector.ExtractOp(v, [], [0]).result for v in self._folded(held, 1)]
        return [self.k.reduce(held[0], self._kind())]

    def _kind(self) -> str:
        if self.how in ("add", "mul"):
            return self.how
        return self.how + ("ui" if self.dtype.is_unsigned else "si")

    def _folded(self, held: list[ir.Value], lanes: int) -> list[ir.Value]:
        """Return running vectors folded to `lanes`, the halves onto each other."""
        while (width := ir.VectorType(held[0].type).shape[0]) > lanes:
            half = width // 2
            low, high = ([_part(v, at, half) for v in held] for at in (0, half))
            held = self._joined(low, high, half)
        return held

    def _joined(self, a: list[ir.Value], b: list[ir.Value], lanes: int) -> list[ir.Value]:
        made = [self._combined(a[0], b[0], lanes)]
        if self.exact:
            made.append(arith.MaxSIOp(a[1], b[1]).result)
        return made

    def _ended(self, held: Sequence[ir.Value], lanes: int) -> TypedScalar:
        """Return the total of vectors, or of scalars (lanes 0)."""
        if not self.exact:
            return TypedScalar(held[0], self.dtype)
        bits = TypedScalar(held[1], dtypes.INT32)
        if lanes:
            b: ArithScalars = VectorScalars(self.k, lanes, dtypes.INT32, self.dtype)
        else:
            b = ArithScalars(dtypes.INT32, self.dtype)
        lost = b.cmp("gt", bits, _INFINITY)
        nan = b.const(float("nan"), self.dtype) if lanes else constant(float("nan"), self.dtype)
        return b.select(lost, nan, TypedScalar(held[0], self.dtype))


class ArgAccumulator(Accumulator):
    """The best element of each lane and its index; how: max or min. NaN is better than a number.

    last: of equal elements the last one, not the first. The total is the index, an i64.
    """

    def __init__(self, k: WorkgroupBuilder, how: str, dtype: DType, *, last: bool) -> None:
        super().__init__(k, how, dtype)
        self.exact, self.size, self.last = False, 2, last
        self.better = "gt" if how == "max" else "lt"
        self.nowhere = -1 if last else int(dtypes.INT32.highest())

    def start(self, lanes: int) -> list[ir.Value]:
        k = self.k
        return [
            k.splat(self.neutral, lanes, self.dtype),
            k.splat(self.nowhere, lanes, dtypes.INT32),
        ]

    def add(
        self, held: Sequence[ir.Value], x: ir.Value, mask: ir.Value | None = None, at: Index = 0,
        *, across: bool = True,
    ) -> list[ir.Value]:  # fmt: skip
        """Return the state after elements with larger indices than all before."""
        lanes = ir.VectorType(x.type).shape[0]
        b = VectorScalars(self.k, lanes, self.dtype, self.dtype)
        new, old = TypedScalar(x, self.dtype), TypedScalar(held[0], self.dtype)
        take = b.cmp(self.better, new, old)
        if self.last:
            take = b.or_(take, b.cmp("eq", new, old))
        if self.dtype.is_float:
            nan, had = b.is_nan(new), b.is_nan(old)
            take = b.or_(take, nan if self.last else b.and_(nan, b.not_(had)))
        chosen = take.value if mask is None else arith.AndIOp(take.value, mask).result
        i32 = ir.IntegerType.get_signless(32)
        positions = self.k.broadcast(arith.IndexCastOp(i32, self.k.index(at)).result, lanes)
        if across:
            kind = self.k.vector_type(lanes, dtypes.INT32)
            numbers: Any = np.arange(lanes, dtype=np.int32)
            lane = constant_of(kind, ir.DenseElementsAttr.get(numbers, type=kind))
            positions = arith.AddIOp(positions, lane).result
        return [
            arith.SelectOp(chosen, x, held[0]).result,
            arith.SelectOp(chosen, positions, held[1]).result,
        ]

    def _joined(self, a: list[ir.Value], b: list[ir.Value], lanes: int) -> list[ir.Value]:
        """Return the better of two states with interleaved indices."""
        s = VectorScalars(self.k, lanes, self.dtype, self.dtype)
        old, new = TypedScalar(a[0], self.dtype), TypedScalar(b[0], self.dtype)
        at, here = (TypedScalar(v[1], dtypes.INT32) for v in (a, b))
        equal, take = s.cmp("eq", new, old), s.cmp(self.better, new, old)
        if self.dtype.is_float:
            nan, had = s.is_nan(new), s.is_nan(old)
            take = s.or_(take, s.and_(nan, s.not_(had)))
            equal = s.or_(equal, s.and_(nan, had))
        sooner = s.cmp("gt" if self.last else "lt", here, at)
        take = s.or_(take, s.and_(equal, sooner))
        return [arith.SelectOp(take.value, y, x).result for x, y in zip(a, b, strict=True)]

    def _single(self, held: list[ir.Value]) -> list[ir.Value]:
        return [vector.ExtractOp(v, [], [0]).result for v in self._folded(held, 1)]

    def _ended(self, held: Sequence[ir.Value], lanes: int) -> TypedScalar:
        """Return the index; 0 where no element was better than the initial value."""
        k, position = self.k, held[1]
        none, first = (
            k.splat(n, lanes, dtypes.INT32) if lanes else k.number(n, dtypes.INT32)
            for n in (self.nowhere, 0)
        )
        lost = arith.CmpIOp(arith.CmpIPredicate.eq, position, none).result
        position = arith.SelectOp(lost, first, position).result
        wide = k.vector_type(lanes, dtypes.INT64) if lanes else ir.IntegerType.get_signless(64)
        return TypedScalar(arith.ExtSIOp(wide, position).result, dtypes.INT64)


def _part(v: ir.Value, at: int, lanes: int) -> ir.Value:
    kind = ir.VectorType.get([lanes], ir.VectorType(v.type).element_type)
    return vector.ExtractStridedSliceOp(kind, v, [at], [lanes], [1]).result

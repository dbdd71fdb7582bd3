"""Running totals of vectors: what a reduction holds in registers, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.scalars import VectorScalars
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import ArithScalars, Number, TypedScalar, constant

_SIGN = 0x7FFFFFFF  # all bits of an f32 but its sign
_INFINITY = 0x7F800000  # bits above these are a NaN's


class Accumulator:
    """One reduction's running vectors; how: add, mean, mul, max, min, or peak.

    `max` and `min` of floats are those of instructions that lose a NaN, so the largest bits that
    were met are held besides: a NaN's are above infinity's. `peak` leaves that out.
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

    def masked(self, x: TypedScalar, mask: ir.Value) -> TypedScalar:
        """Return a vector whose lanes outside of the mask change no total."""
        lanes = ir.VectorType(x.value.type).shape[0]
        none = self.k.splat(self.neutral, lanes, self.dtype)
        return TypedScalar(arith.SelectOp(mask, x.value, none).result, x.dtype)

    def add(self, held: Sequence[ir.Value], x: TypedScalar) -> list[ir.Value]:
        """Return the running vectors with one more."""
        lanes = ir.VectorType(x.value.type).shape[0]
        made = [self._combined(held[0], x.value, lanes)]
        if self.exact:
            bits = arith.BitcastOp(self.k.vector_type(lanes, dtypes.INT32), x.value).result
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
            lanes = ir.VectorType(parts[0][0].type).shape[0]
            return TypedScalar(self._with_nan(parts[0], lanes), self.dtype)
        least = min(ir.VectorType(p[0].type).shape[0] for p in parts)
        folded = [self._folded(p, least) for p in parts]
        whole = folded[0]
        for p in folded[1:]:
            whole = self._joined(whole, p, least)
        if self.dtype.is_float and self.how in ("max", "min"):
            # as while it ran: LLVM's own reductions look for NaN again
            last = [vector.ExtractOp(v, [], [0]).result for v in self._folded(whole, 1)]
        else:
            last = [self.k.reduce(whole[0], self._kind())]
        return TypedScalar(self._with_nan(last, 0), self.dtype)

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

    def _with_nan(self, held: Sequence[ir.Value], lanes: int) -> ir.Value:
        if not self.exact:
            return held[0]
        bits = TypedScalar(held[1], dtypes.INT32)
        if lanes:
            b: ArithScalars = VectorScalars(self.k, lanes, dtypes.INT32, self.dtype)
        else:
            b = ArithScalars(dtypes.INT32, self.dtype)
        lost = b.cmp("gt", bits, _INFINITY)
        nan = b.const(float("nan"), self.dtype) if lanes else constant(float("nan"), self.dtype)
        return b.select(lost, nan, TypedScalar(held[0], self.dtype)).value


def _part(v: ir.Value, at: int, lanes: int) -> ir.Value:
    kind = ir.VectorType.get([lanes], ir.VectorType(v.type).element_type)
    return vector.ExtractStridedSliceOp(kind, v, [at], [lanes], [1]).result

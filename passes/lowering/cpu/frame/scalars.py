"""Scalar functions on vectors: the ScalarBuilder with which vector kernels run pointwise ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa, current_isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    Number,
    ScalarLike,
    TypedScalar,
    constant_of,
    element_attr,
)

_TABLE_LANES = 64  # bytes of a register, on CPUs that look them up among two registers
_ROW_LANES = 32  # bytes of a register, on CPUs that look them up among the bytes of a row
_ROW = 16  # bytes
_ABOVE = 128 - _ROW  # sets the highest bit of an index from the end of a row on


class VectorScalars(ArithScalars):
    """ArithScalars whose values are vectors of `lanes`; without types of 16 and 8 bits."""

    def __init__(self, k: WorkgroupBuilder, lanes: int, dtype: DType, result_dtype: DType) -> None:
        super().__init__(dtype, result_dtype)
        self.k, self.lanes = k, lanes

    def const(self, value: Number, dtype: DType | None = None) -> TypedScalar:
        dtype = self.dtype if dtype is None else dtype
        return TypedScalar(self.k.splat(value, self.lanes, dtype), dtype)

    def type_of(self, dtype: DType) -> ir.Type:
        return self.k.vector_type(self.lanes, dtype)

    def max(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._bounded("le", super().max, x, y)

    def min(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._bounded("ge", super().min, x, y)

    def _bounded(
        self, yields: str, plain: Callable[..., TypedScalar], x: ScalarLike, y: ScalarLike
    ) -> TypedScalar:
        """Compare and select where one is a constant, as maximumf would test both for NaN."""
        a, b = self._pair(x, y)
        found = self.by_number(yields, a, b) if a.dtype.is_float else None
        return plain(a, b) if found is None else found

    def round_even(self, x: ScalarLike) -> TypedScalar:
        """Emit one rounding instruction; math.roundeven lowers to 25."""
        a = self._one(x)
        found = self.k.intrinsic("llvm.roundeven", a.value.type, a.value)
        return TypedScalar(found, a.dtype)

    def lookup(self, x: TypedScalar, table: Sequence[int], dtype: DType) -> TypedScalar:
        """Emit the CPU's table instruction, or look up one lane after the other."""
        isa, lanes = current_isa(), self.lanes
        if isa is None or not isa.looks_up:
            return self._each(x, table, dtype)
        width = _TABLE_LANES if isa.byte_table else _ROW_LANES
        size = min(lanes, width)
        found: ir.Value | None = None
        for at in range(0, lanes, size):
            part = x.value
            if size < lanes:
                kind = self.k.vector_type(size, dtypes.INT8)
                part = vector.ExtractStridedSliceOp(kind, part, [at], [size], [1]).result
            part = self._looked_up(isa, part, size, width, [element_attr(n, dtype) for n in table])
            if found is not None:
                part = vector.ShuffleOp(found, part, list(range(at + size))).result
            found = part
        assert found is not None
        return TypedScalar(found, dtype)

    def _looked_up(
        self, isa: Isa, x: ir.Value, lanes: int, width: int, table: Sequence[ir.Attribute]
    ) -> ir.Value:
        """Return the numbers for up to `width` lanes."""
        if lanes < width:
            x = vector.ShuffleOp(x, x, [i % lanes for i in range(width)]).result
        found = self._of_halves(isa, x, table) if isa.byte_table else self._of_rows(isa, x, table)
        if lanes == width:
            return found
        kind = self.k.vector_type(lanes, dtypes.INT8)
        return vector.ExtractStridedSliceOp(kind, found, [0], [lanes], [1]).result

    def _of_halves(self, isa: Isa, x: ir.Value, table: Sequence[ir.Attribute]) -> ir.Value:
        """Look up in each half of the table, and choose."""
        whole = ir.VectorType(x.type)
        quarters = [
            constant_of(whole, ir.DenseElementsAttr.get(list(table[i : i + _TABLE_LANES]), whole))
            for i in range(0, len(table), _TABLE_LANES)
        ]
        low, high = (
            self.k.intrinsic(isa.byte_table, whole, quarters[i], x, quarters[i + 1]) for i in (0, 2)
        )
        zero = self.k.splat(0, _TABLE_LANES, dtypes.INT8)
        is_high = arith.CmpIOp(arith.CmpIPredicate.slt, x, zero).result
        return arith.SelectOp(is_high, high, low).result

    def _of_rows(self, isa: Isa, x: ir.Value, table: Sequence[ir.Attribute]) -> ir.Value:
        """Look up in each row of the table; all but one of the results are 0."""
        whole = ir.VectorType(x.type)
        above = self.k.splat(_ABOVE, _ROW_LANES, dtypes.INT8)
        found: ir.Value | None = None
        for at in range(0, len(table), _ROW):
            here = self.k.splat(at - 256 if at > 127 else at, _ROW_LANES, dtypes.INT8)
            index = arith.XOrIOp(x, here).result  # less than 16 in this row
            index = self.k.intrinsic("llvm.uadd.sat", whole, index, above)
            row = list(table[at : at + _ROW]) * (_ROW_LANES // _ROW)
            row = constant_of(whole, ir.DenseElementsAttr.get(row, whole))
            part = self.k.intrinsic(isa.byte_row, whole, row, index)
            found = part if found is None else arith.OrIOp(found, part).result
        assert found is not None
        return found

    def _each(self, x: TypedScalar, table: Sequence[int], dtype: DType) -> TypedScalar:
        kind = ir.VectorType(x.value.type)
        found, one = x.value, ArithScalars(x.dtype, dtype)
        for i in range(kind.shape[0]):
            lane = TypedScalar(vector.ExtractOp(x.value, [], [i]).result, x.dtype)
            found = vector.InsertOp(one.lookup(lane, table, dtype).value, found, [], [i]).result
        return TypedScalar(found, dtype)

"""Scalar functions on vectors: the ScalarBuilder with which vector kernels run pointwise ops."""

from __future__ import annotations

from collections.abc import Callable

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lower.cpu.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lower.scalar import ArithScalars, Number, ScalarLike, TypedScalar


class VectorScalars(ArithScalars):
    """ArithScalars whose values are vectors of `lanes`; types of 16 and 8 bits have no place."""

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
        """By a comparison where one is a constant: maximumf asks whether either is a NaN."""
        a, b = self._pair(x, y)
        found = self.by_number(yields, a, b) if a.dtype.is_float else None
        return plain(a, b) if found is None else found

    def round_even(self, x: ScalarLike) -> TypedScalar:
        """By an instruction: math.roundeven becomes 25 of them."""
        a = self._one(x)
        found = self.k.intrinsic("llvm.roundeven", a.value.type, a.value)
        return TypedScalar(found, a.dtype)

"""A ScalarBuilder that computes with numpy arrays: tests the scalar forms without a compiler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.dialects.migraphx import scalar_math


@dataclass(frozen=True, eq=False)
class Value:
    array: np.ndarray
    dtype: DType


def computed(dtype: DType) -> DType:
    return dtypes.FLOAT if dtype.is_low_precision else dtype


def _fma64(a: np.ndarray, c: np.ndarray, e: np.ndarray) -> np.ndarray:
    """a c + e as if rounded once: the rounding errors of product and sum are added at the end."""
    product = a * c
    ah, ch = (v * 134217729.0 - (v * 134217729.0 - v) for v in (a, c))
    al, cl = a - ah, c - ch
    low = ((ah * ch - product) + ah * cl + al * ch) + al * cl
    total = product + e
    back = total - product
    rest = (product - (total - back)) + (e - back)
    found = total + (rest + low)
    return np.where(np.isfinite(found) & (found != 0), found, total)


class NumpyScalars:
    """Checks the protocol's rules as it computes: one dtype per operation, guarded divisions."""

    def __init__(self, dtype: DType, result_dtype: DType) -> None:
        self.dtype, self.result_dtype = computed(dtype), computed(result_dtype)

    def const(self, value: Any, dtype: DType | None = None) -> Value:
        dtype = dtype or self.dtype
        assert dtype is computed(dtype)
        if dtype.is_integer:
            wrapped = int(value) & ((1 << dtype.bits) - 1)
            return Value(np.array(wrapped, f"u{dtype.size}").view(dtype.np), dtype)
        return Value(np.array(value).astype(dtype.np), dtype)

    def _pair(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray, DType]:
        if not isinstance(x, Value):
            x = self.const(x, y.dtype if isinstance(y, Value) else None)
        if not isinstance(y, Value):
            y = self.const(y, x.dtype)
        assert x.dtype is y.dtype, f"{x.dtype} and {y.dtype} in one operation"
        return x.array, y.array, x.dtype

    def _two(self, f: Any, x: Any, y: Any) -> Value:
        a, c, d = self._pair(x, y)
        return Value(np.asarray(f(a, c)).astype(d.np), d)

    def _one(self, f: Any, x: Any) -> Value:
        x = x if isinstance(x, Value) else self.const(x)
        assert x.dtype.is_float
        return Value(np.asarray(f(x.array)).astype(x.dtype.np), x.dtype)

    def _f32(self, f: Any, x: Value) -> Value:
        assert x.dtype is dtypes.FLOAT
        return Value(np.asarray(f(x.array.astype(np.float64))).astype(np.float32), x.dtype)

    def add(self, x: Any, y: Any) -> Value:
        return self._two(np.add, x, y)

    def sub(self, x: Any, y: Any) -> Value:
        _, _, d = self._pair(x, y)
        return self._two(np.logical_xor if d.is_bool else np.subtract, x, y)

    def mul(self, x: Any, y: Any) -> Value:
        return self._two(np.multiply, x, y)

    def _guarded(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray, DType]:
        a, c, d = self._pair(x, y)
        if not d.is_float:
            assert not (c == 0).any(), "integer division by zero"
            if d.is_signed:
                assert not ((c == -1) & (a == int(d.lowest()))).any(), "overflowing division"
        return a, c, d

    def div(self, x: Any, y: Any) -> Value:
        a, c, d = self._guarded(x, y)
        if d.is_float:
            return Value(np.divide(a, c), d)
        q = np.floor_divide(a, c)
        return Value((q + ((q * c != a) & ((a < 0) != (c < 0)))).astype(d.np), d)

    def rem(self, x: Any, y: Any) -> Value:
        a, c, d = self._guarded(x, y)
        assert d is not dtypes.DOUBLE
        return Value(np.fmod(a, c), d)

    def neg(self, x: Value) -> Value:
        return Value(np.negative(x.array), x.dtype)

    def abs(self, x: Value) -> Value:
        return Value(np.abs(x.array), x.dtype)

    def max(self, x: Any, y: Any) -> Value:
        return self._two(np.maximum, x, y)

    def min(self, x: Any, y: Any) -> Value:
        return self._two(np.minimum, x, y)

    def fma(self, x: Any, y: Any, z: Any) -> Value:
        a, c, d = self._pair(x, y)
        _, e, _ = self._pair(x, z)
        if d is dtypes.FLOAT:  # the product is exact in f64
            return Value((a.astype(np.float64) * c + e).astype(d.np), d)
        return Value(_fma64(a, c, e), d)

    def sqrt(self, x: Any) -> Value:
        return self._one(np.sqrt, x)

    def rsqrt(self, x: Any) -> Value:
        return self._one(lambda v: 1 / np.sqrt(v), x)

    def exp(self, x: Any) -> Value:
        return self._one(lambda v: np.exp(v.astype(np.longdouble)), x)

    def log(self, x: Any) -> Value:
        # subnormals flush, as on the targets
        def flushed(v: np.ndarray) -> np.ndarray:
            return np.log(np.where(np.abs(v) < np.finfo(v.dtype).tiny, 0, v).astype(np.longdouble))

        return self._one(flushed, x)

    def log2(self, x: Any) -> Value:
        return self._f32(lambda v: np.log2(np.where(np.abs(v) < 2.0**-126, 0, v)), x)

    def tanh(self, x: Any) -> Value:
        return self._f32(np.tanh, x)

    def sigmoid(self, x: Any) -> Value:
        return scalar_math.sigmoid_by_exp(self, self._one(lambda v: v, x))

    def erf(self, x: Any) -> Value:
        return self._f32(lambda v: np.asarray(np.frompyfunc(math.erf, 1, 1)(v), float) + 0.0, x)

    def floor(self, x: Any) -> Value:
        return self._one(np.floor, x)

    def ceil(self, x: Any) -> Value:
        return self._one(np.ceil, x)

    def trunc(self, x: Any) -> Value:
        return self._one(np.trunc, x)

    def lookup(self, x: Any, table: Any, dtype: DType) -> Value:
        assert x.dtype.bits == dtype.bits == 8
        assert len(table) == 256
        return Value(np.array(table).astype(dtype.np)[x.array.view(np.uint8)], dtype)

    def round_even(self, x: Any) -> Value:
        return self._one(np.rint, x)

    def copysign(self, x: Any, y: Any) -> Value:
        return self._two(np.copysign, x, y)

    def is_nan(self, x: Value) -> Value:
        return Value(np.isnan(x.array), dtypes.BOOL)

    def is_inf(self, x: Value) -> Value:
        return Value(np.isinf(x.array), dtypes.BOOL)

    def cmp(self, predicate: str, x: Any, y: Any) -> Value:
        f = {
            "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
            "gt": np.greater, "ge": np.greater_equal,
        }[predicate]  # fmt: skip
        a, c, _ = self._pair(x, y)
        return Value(np.asarray(f(a, c)), dtypes.BOOL)

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        assert condition.dtype is dtypes.BOOL
        a, c, d = self._pair(x, y)
        return Value(np.where(condition.array, a, c), d)

    def and_(self, x: Any, y: Any) -> Value:
        return self._two(np.bitwise_and, x, y)

    def or_(self, x: Any, y: Any) -> Value:
        return self._two(np.bitwise_or, x, y)

    def xor(self, x: Any, y: Any) -> Value:
        return self._two(np.bitwise_xor, x, y)

    def not_(self, x: Value) -> Value:
        return Value(np.invert(x.array), x.dtype)

    def _shift(self, f: Any, x: Any, count: Any) -> Value:
        a, c, d = self._pair(x, count)
        assert ((c >= 0) & (c < d.bits)).all(), "shift count out of range"
        return Value(f(a, c), d)

    def shl(self, x: Any, count: Any) -> Value:
        return self._shift(np.left_shift, x, count)

    def shr(self, x: Any, count: Any) -> Value:
        return self._shift(np.right_shift, x, count)

    def cast(self, x: Value, dtype: DType) -> Value:
        if dtype.is_bool:
            return Value(x.array != 0, dtype)
        if x.dtype.is_float and dtype.is_integer:
            t = np.trunc(x.array)
            assert (t >= float(dtype.lowest())).all()
            assert (t < float(int(dtype.highest()) + 1)).all(), "out of range"
        found = x.array.astype(dtype.np)
        return Value(found.astype(computed(dtype).np), computed(dtype))

    def bitcast(self, x: Value, dtype: DType) -> Value:
        return Value(np.ascontiguousarray(x.array).view(dtype.np).reshape(x.array.shape), dtype)

"""Pointwise operators of three operands: clip and where."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.op import InferView, Operand, Pointwise, Result, check
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.pointwise_base import (
    EXAMPLE_DTYPES,
    LOGICAL,
    NUMBER,
    check_dtype,
    common_dims,
    logical,
    same_type,
    sample,
)
from mgx_mlir.dialects.migraphx.samples import Example, example


class Clip(Pointwise, name="clip"):
    """min(max(x, low), high): `high` where low > high, NaN where any of the three is NaN.

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX `clip`.

    `%3 = "migraphx.clip"(%0, %1, %2) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>`
    """

    input: Operand
    low: Operand
    high: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return same_type((o.input, o.low, o.high), NUMBER)

    @staticmethod
    def reference(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(x, low), high)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, low: Scalar, high: Scalar) -> Scalar:
        return b.min(b.max(x, low), high)

    @staticmethod
    def examples() -> list[Example]:
        found: list[Example] = []
        for dtype in EXAMPLE_DTYPES:
            if dtype in NUMBER:
                x = sample((3, 4), dtype, -3, 3)
                low = np.full((3, 4), 1, dtype.np)
                found.append(example(x, low, np.full((3, 4), 2, dtype.np)))
        x = np.array([np.nan, np.inf, -np.inf, 0, 5], np.float32)
        low, high = np.full(5, -1, np.float32), np.full(5, 1, np.float32)
        return [*found, example(x, low, high), example(x, high, low)]


class Where(Pointwise, name="where"):
    """`a` where `cond` is not 0, else `b`.

    `cond` is bool (or an integer); a and b have one type (any), which the result has; all three
    have equal dims. MIGraphX `where`.

    `%3 = "migraphx.where"(%0, %1, %2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>`
    """

    cond: Operand
    a: Operand
    b: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.cond, LOGICAL, "operand 'cond'")
        check(
            o.a.dtype is o.b.dtype,
            lambda: f"expected choices of one type, got {o.a.dtype.mlir} and {o.b.dtype.mlir}",
        )
        return o.a.with_dims(common_dims((o.a, o.b, o.cond)))

    @staticmethod
    def reference(cond: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(cond != 0, a, b)

    @staticmethod
    def scalar(b: ScalarBuilder, cond: Scalar, x: Scalar, y: Scalar) -> Scalar:
        return b.select(logical(b, cond), x, y)

    @staticmethod
    def examples() -> list[Example]:
        cond = sample((3, 4), dtypes.BOOL, 0, 1)
        return [
            example(cond, sample((3, 4), d, -3, 3, seed=1), sample((3, 4), d, -3, 3, seed=2))
            for d in EXAMPLE_DTYPES
        ]

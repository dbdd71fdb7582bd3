"""Pointwise operators of two operands: arithmetic, extrema, comparisons, logic."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.dialects.migraphx import scalar_math
from mgx_mlir.dialects.migraphx.pointwise_base import (
    ANY,
    LOGICAL,
    Binary,
    logical,
)
from mgx_mlir.dialects.migraphx.samples import Example, example


class Add(Binary, name="add"):
    """x + y; integers wrap, bool is or.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `add`.

    `%2 = "migraphx.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    TYPES = ANY
    commutative = True

    reference = staticmethod(np.add)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.add(x, y)


class Sub(Binary, name="sub"):
    """x - y; integers wrap, bool is xor.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `sub`.

    `%2 = "migraphx.sub"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    TYPES = ANY

    @staticmethod
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logical_xor(x, y) if x.dtype == np.bool_ else np.subtract(x, y)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.sub(x, y)


class Mul(Binary, name="mul"):
    """x y; integers wrap, bool is and.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `mul`.

    `%2 = "migraphx.mul"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    TYPES = ANY
    commutative = True

    reference = staticmethod(np.multiply)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.mul(x, y)


class Div(Binary, name="div"):
    """x / y; integers truncate toward zero, x / 0 is 0 and the smallest by -1 is itself.

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX `div`
    (there an integer division by 0 is undefined).

    `%2 = "migraphx.div"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    @staticmethod
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "f":
            return np.divide(x, y)
        quotient = np.floor_divide(x, y)  # 0 for a zero divisor
        inexact = (np.multiply(quotient, y) != x) & (y != 0)
        return quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.div(x, y) if x.dtype.is_float else scalar_math.integer_divide(b, x, y)


class Pow(Binary, name="pow"):
    """x to the power of y, as C's pow; integers wrap, a negative exponent gives 0 (1, -1: itself).

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX `pow`.

    `%2 = "migraphx.pow"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    @staticmethod
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if x.dtype.kind != "i":
            # numpy 2.4 takes the root for an exponent of 0.5: NaN of -inf, -0 of -0
            edge = np.isinf(x) | (x == 0)
            size = np.power(np.abs(x), y)
            odd = np.signbit(x) & (np.mod(y, 2) == 1)
            return np.where(edge, np.where(odd, -size, size), np.power(x, y))
        positive = np.power(x, np.maximum(y, 0))
        inverse = np.where(np.abs(x) == 1, np.where(y % 2 == 0, 1, x), 0).astype(x.dtype)
        return np.where(y < 0, inverse, positive)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.is_float:
            return scalar_math.power(b, x, y)
        return scalar_math.integer_power(b, x, y)

    @classmethod
    def examples(cls) -> list[Example]:
        x = np.array([-8, -2, -1.5, -0.5, 0.25, 1.5, 3, 7], np.float32)
        pairs = np.repeat(x, 8), np.tile(np.array([-3, -2, -1, 0, 0.5, 1, 2, 3], np.float32), 8)
        whole = tuple(v.astype(np.int32) for v in pairs)
        return [*super().examples(), example(*pairs), example(*whole)]


class Max(Binary, name="max"):
    """The larger; NaN where either is NaN; bool is or.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `max`.

    `%2 = "migraphx.max"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    TYPES = ANY
    commutative = True

    reference = staticmethod(np.maximum)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.max(x, y)


class Min(Binary, name="min"):
    """The smaller; NaN where either is NaN; bool is and.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `min`.

    `%2 = "migraphx.min"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    TYPES = ANY
    commutative = True

    reference = staticmethod(np.minimum)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.min(x, y)


class Prelu(Binary, name="prelu"):
    """x where x >= 0, else x y.

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX
    `prelu`.

    `%2 = "migraphx.prelu"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    @staticmethod
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(x < 0, x * y, x)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.select(b.cmp("lt", x, 0), b.mul(x, y), x)


class SqDiff(Binary, name="sqdiff"):
    """(x - y)^2; integers wrap.

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX
    `sqdiff`.

    `%2 = "migraphx.sqdiff"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    commutative = True

    @staticmethod
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.square(x - y)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        d = b.sub(x, y)
        return b.mul(d, d)


class FMod(Binary, name="fmod"):
    """The remainder of x / y with the sign of x (C's fmod and %); integers by 0 give 0.

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX `fmod`;
    ONNX Mod with fmod=1.

    `%2 = "migraphx.fmod"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    discontinuous = True

    reference = staticmethod(np.fmod)
    scalar = staticmethod(scalar_math.fmod)


class Mod(Binary, name="mod"):
    """The remainder of x / y with the sign of y (Python's %); integers by 0 give 0.

    Operands of one type (float or integer) and equal dims, which the result has. MIGraphX `mod`;
    ONNX Mod with fmod=0.

    `%2 = "migraphx.mod"(%0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>`
    """

    discontinuous = True

    reference = staticmethod(np.mod)
    scalar = staticmethod(scalar_math.modulo)


class Equal(Binary, name="equal"):
    """1 where x = y, else 0, in the operands' type.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `equal`.

    `%2 = "migraphx.equal"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    discontinuous = True
    TYPES = ANY
    commutative = True

    reference = staticmethod(np.equal)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.cast(b.cmp("eq", x, y), x.dtype)


class Greater(Binary, name="greater"):
    """1 where x > y, else 0, in the operands' type.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `greater`.

    `%2 = "migraphx.greater"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    discontinuous = True
    TYPES = ANY

    reference = staticmethod(np.greater)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.cast(b.cmp("gt", x, y), x.dtype)


class Less(Binary, name="less"):
    """1 where x < y, else 0, in the operands' type.

    Operands of one type (any) and equal dims, which the result has. MIGraphX `less`.

    `%2 = "migraphx.less"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`
    """

    discontinuous = True
    TYPES = ANY

    reference = staticmethod(np.less)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.cast(b.cmp("lt", x, y), x.dtype)


class LogicalAnd(Binary, name="logical_and"):
    """1 where x and y are both not 0, else 0, in the operands' type.

    Operands of one type (bool or integer) and equal dims, which the result has. MIGraphX
    `logical_and`.

    `%2 = "migraphx.logical_and"(%0, %1) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>`
    """

    TYPES = LOGICAL
    commutative = True

    reference = staticmethod(np.logical_and)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.cast(b.and_(logical(b, x), logical(b, y)), x.dtype)


class LogicalOr(Binary, name="logical_or"):
    """1 where x or y is not 0, else 0, in the operands' type.

    Operands of one type (bool or integer) and equal dims, which the result has. MIGraphX
    `logical_or`.

    `%2 = "migraphx.logical_or"(%0, %1) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>`
    """

    TYPES = LOGICAL
    commutative = True

    reference = staticmethod(np.logical_or)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.cast(b.or_(logical(b, x), logical(b, y)), x.dtype)


class LogicalXor(Binary, name="logical_xor"):
    """1 where exactly one of x and y is not 0, else 0, in the operands' type.

    Operands of one type (bool or integer) and equal dims, which the result has. MIGraphX
    `logical_xor`.

    `%2 = "migraphx.logical_xor"(%0, %1) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>`
    """

    TYPES = LOGICAL
    commutative = True

    reference = staticmethod(np.logical_xor)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.cast(b.xor(logical(b, x), logical(b, y)), x.dtype)


class BitwiseAnd(Binary, name="bitwise_and"):
    """The bits set in both x and y.

    Operands of one type (bool or integer) and equal dims, which the result has. MIGraphX
    `bitwise_and`.

    `%2 = "migraphx.bitwise_and"(%0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>`
    """

    TYPES = LOGICAL
    commutative = True

    reference = staticmethod(np.bitwise_and)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.and_(x, y)

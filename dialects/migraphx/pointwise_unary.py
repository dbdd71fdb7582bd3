"""Pointwise operators of one operand: rounding, roots, exponentials, activations, tests."""

from __future__ import annotations

import math

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.op import InferView
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx import scalar_math
from mgx_mlir.dialects.migraphx.pointwise_base import FLOAT, LOGICAL, NUMBER, Unary, check_dtype
from mgx_mlir.dialects.migraphx.samples import Example


class Abs(Unary, name="abs"):
    """The magnitude; the smallest signed integer is its own.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `abs`.

    `%1 = "migraphx.abs"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    TYPES = NUMBER

    reference = staticmethod(np.abs)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.abs(x)


class Neg(Unary, name="neg"):
    """The negative; integers wrap.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `neg`.

    `%1 = "migraphx.neg"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    TYPES = NUMBER

    reference = staticmethod(np.negative)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.neg(x)


class Sign(Unary, name="sign"):
    """-1, 0 or 1; a zero keeps its sign bit, NaN stays NaN.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `sign` (there
    NaN gives 0).

    `%1 = "migraphx.sign"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    discontinuous = True
    TYPES = NUMBER

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.where(x == 0, x, np.sign(x))

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        one = b.const(1, x.dtype)
        positive = b.select(b.cmp("gt", x, 0), one, x)
        if x.dtype.is_unsigned:
            return positive
        return b.select(b.cmp("lt", x, 0), b.const(-1, x.dtype), positive)


class Ceil(Unary, name="ceil"):
    """The smallest integer not below x; integers are themselves.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `ceil`.

    `%1 = "migraphx.ceil"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    discontinuous = True
    TYPES = NUMBER

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.ceil(x) if x.dtype.kind == "f" else x

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.ceil(x) if x.dtype.is_float else x


class Floor(Unary, name="floor"):
    """The largest integer not above x; integers are themselves.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `floor`.

    `%1 = "migraphx.floor"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    discontinuous = True
    TYPES = NUMBER

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.floor(x) if x.dtype.kind == "f" else x

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.floor(x) if x.dtype.is_float else x


class NearbyInt(Unary, name="nearbyint"):
    """The nearest integer, halves to the even one; integers are themselves.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `nearbyint`
    (older files: `round`); ONNX Round.

    `%1 = "migraphx.nearbyint"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    discontinuous = True
    TYPES = NUMBER

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.rint(x) if x.dtype.kind == "f" else x

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.round_even(x) if x.dtype.is_float else x

    @classmethod
    def examples(cls) -> list[Example]:
        halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997], np.float32)
        return [*super().examples(), ((halves,), {})]


class Sqrt(Unary, name="sqrt"):
    """The square root; NaN below 0.

    Floats of any dims; the result has the operand's type. MIGraphX `sqrt`.

    `%1 = "migraphx.sqrt"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (0.0, 9.0)

    reference = staticmethod(np.sqrt)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.sqrt(x)


class Rsqrt(Unary, name="rsqrt"):
    """1 / sqrt(x); infinity at 0, NaN below.

    Floats of any dims; the result has the operand's type. MIGraphX `rsqrt`.

    `%1 = "migraphx.rsqrt"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (0.01, 9.0)

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return 1 / np.sqrt(x)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.rsqrt(x)


class Recip(Unary, name="recip"):
    """1 / x.

    Floats of any dims; the result has the operand's type. MIGraphX `recip`; ONNX Reciprocal.

    `%1 = "migraphx.recip"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return 1 / x

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.div(b.const(1.0, x.dtype), x)


class Exp(Unary, name="exp"):
    """e to the power of x.

    Floats of any dims; the result has the operand's type. MIGraphX `exp`.

    `%1 = "migraphx.exp"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.exp)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.exp(x)


class Log(Unary, name="log"):
    """The natural logarithm; -infinity at 0, NaN below.

    Floats of any dims; the result has the operand's type. MIGraphX `log`.

    `%1 = "migraphx.log"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (0.01, 9.0)

    reference = staticmethod(np.log)
    scalar = staticmethod(scalar_math.log)


class Log2(Unary, name="log2"):
    """The logarithm to base 2; -infinity at 0, NaN below.

    Floats of any dims; the result has the operand's type. MIGraphX `log2`.

    `%1 = "migraphx.log2"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (0.01, 9.0)

    reference = staticmethod(np.log2)
    scalar = staticmethod(scalar_math.log2)


class Erf(Unary, name="erf"):
    """The error function.

    Floats of any dims; the result has the operand's type. MIGraphX `erf`.

    `%1 = "migraphx.erf"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)

    scalar = staticmethod(scalar_math.erf)


class Relu(Unary, name="relu"):
    """max(0, x); NaN stays NaN.

    Floats and integers of any dims; the result has the operand's type. MIGraphX `relu`.

    `%1 = "migraphx.relu"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    TYPES = NUMBER

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return x if x.dtype.is_unsigned else b.max(x, 0)


class Sigmoid(Unary, name="sigmoid"):
    """1 / (1 + e^-x).

    Floats of any dims; the result has the operand's type. MIGraphX `sigmoid`.

    `%1 = "migraphx.sigmoid"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + e), e / (1 + e))

    scalar = staticmethod(scalar_math.sigmoid)


class Elu(Unary, name="elu"):
    """x where x > 0, else alpha (e^x - 1).

    Floats of any dims; the result has the operand's type. MIGraphX `elu`.

    `%1 = "migraphx.elu"(%0) {alpha = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    alpha = attr.float_(1.0)

    @staticmethod
    def reference(x: np.ndarray, *, alpha: float) -> np.ndarray:
        return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(x))

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, *, alpha: float) -> Scalar:
        below = scalar_math.expm1(b, x)
        if alpha != 1.0:
            below = b.mul(below, alpha)
        return b.select(b.cmp("ge", x, 0.0), x, below)

    @classmethod
    def examples(cls) -> list[Example]:
        return [*super().examples(), *((xs, {"alpha": 0.5}) for xs, _ in super().examples()[:2])]


class LeakyRelu(Unary, name="leaky_relu"):
    """x where x > 0, else alpha x.

    Floats of any dims; the result has the operand's type. MIGraphX `leaky_relu`.

    `%1 = "migraphx.leaky_relu"(%0) {alpha = 0.01 : f64} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    alpha = attr.float_(0.01)

    @staticmethod
    def reference(x: np.ndarray, *, alpha: float) -> np.ndarray:
        return np.where(x > 0, x, x * x.dtype.type(alpha))

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, *, alpha: float) -> Scalar:
        return b.select(b.cmp("gt", x, 0.0), x, b.mul(x, alpha))

    @classmethod
    def examples(cls) -> list[Example]:
        return [*super().examples(), *((xs, {"alpha": 1.5}) for xs, _ in super().examples()[:2])]


class Not(Unary, name="not"):
    """Logical not: 1 where x is 0, else 0.

    Bool and integers of any dims; the result has the operand's type. MIGraphX `not`.

    `%1 = "migraphx.not"(%0) : (tensor<4xi1>) -> tensor<4xi1>`
    """

    TYPES = LOGICAL

    reference = staticmethod(np.logical_not)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.not_(x) if x.dtype.is_bool else b.cast(b.cmp("eq", x, 0), x.dtype)


class FloatTest(Unary):
    """Base of the tests of a float: the result is bool."""

    discontinuous = True

    @classmethod
    def infer(cls, o: InferView) -> TensorType:
        check_dtype(o.input, FLOAT)
        return o.input.with_dtype(dtypes.BOOL)


class IsNan(FloatTest, name="isnan"):
    """Return whether x is NaN.

    Floats of any dims; the result is bool. MIGraphX `isnan`.

    `%1 = "migraphx.isnan"(%0) : (tensor<4xf32>) -> tensor<4xi1>`
    """

    reference = staticmethod(np.isnan)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.is_nan(x)


class IsInf(FloatTest, name="isinf"):
    """Return whether x is an infinity of either sign.

    Floats of any dims; the result is bool. MIGraphX `isinf`.

    `%1 = "migraphx.isinf"(%0) : (tensor<4xf32>) -> tensor<4xi1>`
    """

    reference = staticmethod(np.isinf)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.is_inf(x)

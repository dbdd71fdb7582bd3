"""Pointwise operators of one operand: circular and hyperbolic functions and their inverses."""

from __future__ import annotations

import numpy as np

from mgx_mlir.dialects.migraphx import scalar_math
from mgx_mlir.dialects.migraphx.pointwise_base import Unary


class Sin(Unary, name="sin"):
    """The sine of x in radians; NaN at infinities.

    Floats of any dims; the result has the operand's type. MIGraphX `sin`. On compiled targets
    the phase of f32 is exact up to about 1e6, of f64 up to 1e15; beyond, it is lost.

    `%1 = "migraphx.sin"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.sin)
    scalar = staticmethod(scalar_math.sin)


class Cos(Unary, name="cos"):
    """The cosine of x in radians; NaN at infinities. Range as `sin`.

    Floats of any dims; the result has the operand's type. MIGraphX `cos`.

    `%1 = "migraphx.cos"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.cos)
    scalar = staticmethod(scalar_math.cos)


class Tan(Unary, name="tan"):
    """The tangent of x in radians; NaN at infinities. Range as `sin`.

    Floats of any dims; the result has the operand's type. MIGraphX `tan`.

    `%1 = "migraphx.tan"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.tan)
    scalar = staticmethod(scalar_math.tan)


class Asin(Unary, name="asin"):
    """The inverse sine; NaN outside of [-1, 1].

    Floats of any dims; the result has the operand's type. MIGraphX `asin`.

    `%1 = "migraphx.asin"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (-1.0, 1.0)

    reference = staticmethod(np.arcsin)
    scalar = staticmethod(scalar_math.asin)


class Acos(Unary, name="acos"):
    """The inverse cosine; NaN outside of [-1, 1].

    Floats of any dims; the result has the operand's type. MIGraphX `acos`.

    `%1 = "migraphx.acos"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (-1.0, 1.0)

    reference = staticmethod(np.arccos)
    scalar = staticmethod(scalar_math.acos)


class Atan(Unary, name="atan"):
    """The inverse tangent, in [-pi/2, pi/2].

    Floats of any dims; the result has the operand's type. MIGraphX `atan`.

    `%1 = "migraphx.atan"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.arctan)
    scalar = staticmethod(scalar_math.atan)


class Sinh(Unary, name="sinh"):
    """The hyperbolic sine.

    Floats of any dims; the result has the operand's type. MIGraphX `sinh`.

    `%1 = "migraphx.sinh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.sinh)
    scalar = staticmethod(scalar_math.sinh)


class Cosh(Unary, name="cosh"):
    """The hyperbolic cosine.

    Floats of any dims; the result has the operand's type. MIGraphX `cosh`.

    `%1 = "migraphx.cosh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.cosh)
    scalar = staticmethod(scalar_math.cosh)


class Tanh(Unary, name="tanh"):
    """The hyperbolic tangent.

    Floats of any dims; the result has the operand's type. MIGraphX `tanh`.

    `%1 = "migraphx.tanh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.tanh)
    scalar = staticmethod(scalar_math.tanh)


class Asinh(Unary, name="asinh"):
    """The inverse hyperbolic sine.

    Floats of any dims; the result has the operand's type. MIGraphX `asinh`.

    `%1 = "migraphx.asinh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    reference = staticmethod(np.arcsinh)
    scalar = staticmethod(scalar_math.asinh)


class Acosh(Unary, name="acosh"):
    """The inverse hyperbolic cosine; NaN below 1.

    Floats of any dims; the result has the operand's type. MIGraphX `acosh`.

    `%1 = "migraphx.acosh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (1.0, 9.0)

    reference = staticmethod(np.arccosh)
    scalar = staticmethod(scalar_math.acosh)


class Atanh(Unary, name="atanh"):
    """The inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.

    Floats of any dims; the result has the operand's type. MIGraphX `atanh`.

    `%1 = "migraphx.atanh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>`
    """

    DOMAIN = (-0.99, 0.99)

    reference = staticmethod(np.arctanh)
    scalar = staticmethod(scalar_math.atanh)

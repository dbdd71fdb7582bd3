"""Cases of elementwise operators."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 88.0, -100.0, 1e-5]
ANYWHERE = (
    "Abs", "Atan", "Ceil", "Cos", "Elu", "Erf", "Erfc", "Exp", "Expm1", "Floor", "IsFinite",
    "IsInf", "IsNan", "Neg", "Rint", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Cosh",
    "Square", "Tanh", "Asinh",
)  # fmt: skip
FEATURES = ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign")
POSITIVE = ("Log", "Log1p", "Rsqrt", "Sqrt", "Reciprocal", "Inv")
UNIT = ("Acos", "Asin", "Atanh", "Tan")
NARROW = ("float16", "bfloat16")


def _unary(g: Cases, name: str, x: object, **kw: object) -> None:
    key = "features" if name in FEATURES else "x"
    g.op(name, **{key: x}, **kw)


@group
def unary_f32(g: Cases) -> None:
    x = g.floats(3, 7)
    s = g.input(SPECIAL, "float32")
    for name in dict.fromkeys((*ANYWHERE, *FEATURES)):
        _unary(g, name, x)
        if name not in ("Cos", "Sin"):  # large arguments are another matter
            _unary(g, name, s)
    g.op("LeakyRelu", features=x, alpha=0.3)
    p = g.floats(3, 7, low=0.01, high=9)
    for name in POSITIVE:
        _unary(g, name, p)
        _unary(g, name, s)
    u = g.floats(3, 7, low=-0.99, high=0.99)
    for name in UNIT:
        _unary(g, name, u)
    tiny = g.input([1e-8, -1e-8, 1e-4, -1e-4, 0.3, -0.3, 3e-39], "float32")
    for name in ("Log1p", "Expm1", "Erf", "Tanh", "Asinh", "Sinh"):
        _unary(g, name, tiny)
    g.op("Acosh", x=g.floats(3, 7, low=1.01, high=9))
    g.op("Erfinv", x=u)
    g.op("Erfc", x=g.input([-9, -3, -1, 0, 0.3, 1, 2, 3, 5, 8], "float32"))
    g.op("Lgamma", x=g.input([0.1, 0.5, 1, 1.5, 2, 2.5, 3.7, 10, 50, 1000.0], "float32"), atol=1e-5)
    g.op("Lgamma", x=g.input([-0.5, -1.3, -2.7, 1e-3], "float32"), rtol=1e-4, atol=1e-5)
    g.op("Ndtri", x=g.floats(3, 7, low=0.02, high=0.98))


@group
def unary_other(g: Cases) -> None:
    for dtype in ("float64", *NARROW):
        x = g.floats(2, 5, dtype=dtype)
        p = g.floats(2, 5, dtype=dtype, low=0.05, high=9)
        for name in (
            "Abs",
            "Floor",
            "Neg",
            "Relu",
            "Relu6",
            "Sign",
            "Square",
            "Softplus",
            "Elu",
            "Selu",
            "LeakyRelu",
            "Softsign",
            "Exp",
            "Sigmoid",
            "Tanh",
            "Rint",
            "Round",
        ):
            if name == "Rint" and dtype in NARROW:
                continue  # TensorFlow has no kernel
            _unary(g, name, x)  # fmt: skip
        for name in ("Log", "Sqrt", "Rsqrt", "Reciprocal", "Log1p"):
            _unary(g, name, p)
    x = g.floats(2, 5, dtype="float64")
    for name in ("Sin", "Cos", "Erf", "Erfc", "Expm1", "Atan", "Sinh", "Cosh", "Asinh", "Ceil"):
        _unary(g, name, x)
    for dtype in ("int8", "int16", "int32", "int64"):
        x = g.ints(2, 5, dtype=dtype)
        for name in ("Abs", "Neg", "Sign", "Square", "Relu", "Relu6"):
            _unary(g, name, x)
        g.op("Invert", x=x)
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        x = g.ints(2, 5, dtype=dtype, low=0, high=200)
        g.op("Invert", x=x)
        g.op("PopulationCount", x=x)
    g.op("Relu", features=g.ints(4, dtype="uint8", low=0))
    g.op("PopulationCount", x=g.ints(2, 5, dtype="int16", low=-3000, high=3000))
    g.op("PopulationCount", x=g.ints(2, 5, dtype="int64"))
    g.op("LogicalNot", x=g.bools(2, 5))


ARITHMETIC = ("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference")
COMPARE = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")


@group
def binary_f32(g: Cases) -> None:
    x, y = g.floats(3, 1, 5), g.floats(4, 1)
    s = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5], np.float32)
    a, b = g.input(np.repeat(s, len(s))), g.input(np.tile(s, len(s)))
    for name in (*ARITHMETIC, *COMPARE, "RealDiv", "Div", "DivNoNan", "MulNoNan"):
        g.op(name, x=x, y=y)
        g.op(name, x=a, y=b)
    for name in ("FloorDiv", "FloorMod", "Mod", "TruncateMod"):
        g.op(name, x=x, y=y, atol=1e-6)
    g.op("Atan2", y=x, x=y)
    p = g.floats(4, 1, low=0.1, high=4)
    g.op("Pow", x=p, y=x)
    g.op("Pow", x=a, y=b)
    e = g.input([[0.0], [2.0], [3.0], [-1.0]], "float32")
    g.op("Pow", x=x, y=e)
    for name in ("Xdivy", "Xlogy", "Xlog1py"):
        g.op(name, x=x, y=p)
    zero = g.input([0, 0, 0, 2, -1], "float32")
    other = g.input([0, np.inf, np.nan, 0, 3], "float32")
    for name in ("Xdivy", "Xlogy", "MulNoNan", "DivNoNan"):
        g.op(name, x=zero, y=other)
        g.op(name, x=other, y=zero)
    g.op("ApproximateEqual", x=x, y=g.input(np.zeros((3, 1, 5)), "float32"), tolerance=1.0)
    g.op("AddN", inputs=[x, x, g.floats(3, 1, 5)])
    g.op("AccumulateNV2", inputs=[x, g.floats(3, 1, 5)], shape=[3, 1, 5])
    g.op("ClipByValue", t=x, clip_value_min=np.float32(-1), clip_value_max=np.float32(1.5))
    g.op("ClipByValue", t=x, clip_value_min=g.floats(3, 1, 5, low=-2, high=-1),
         clip_value_max=np.float32(1.5))  # fmt: skip
    v, w = g.floats(2, 3), g.floats(2, 3)
    g.op("Cross", a=v, b=w)
    g.op("Equal", x=v, y=g.floats(4, 5), incompatible_shape_error=False)
    g.op("NotEqual", x=v, y=g.floats(4, 5), incompatible_shape_error=False)


@group
def binary_other(g: Cases) -> None:
    for dtype in ("float64", *NARROW):
        x, y = g.floats(3, 5, dtype=dtype), g.floats(3, 1, dtype=dtype, low=0.5)
        for name in (*ARITHMETIC, *COMPARE, "RealDiv", "Pow"):
            g.op(name, x=g.floats(3, 5, dtype=dtype, low=0.2) if name == "Pow" else x, y=y)
    x, y = g.floats(3, 5, dtype="float64"), g.floats(3, 1, dtype="float64", low=0.5)
    for name in ("FloorDiv", "FloorMod", "TruncateMod", "Atan2"):
        g.op(name, x=x, y=y)
    divisors = np.array([[3], [-2], [1]])
    for dtype in ("int8", "int16", "int32", "int64"):
        x, y = g.ints(3, 5, dtype=dtype), g.input(divisors, dtype)
        for name in (*ARITHMETIC, *COMPARE, "FloorDiv", "FloorMod", "Div", "BitwiseAnd",
                     "BitwiseOr", "BitwiseXor"):  # fmt: skip
            if name == "SquaredDifference" and dtype in ("int8", "int16"):
                continue  # TensorFlow has no kernel
            g.op(name, x=x, y=y)
        g.op("TruncateDiv", x=x, y=y)
        if dtype in ("int32", "int64"):
            g.op("TruncateMod", x=x, y=y)
            g.op("Mod", x=x, y=y)
        if dtype != "int8":
            g.op("Pow", x=x, y=g.ints(3, 5, dtype=dtype, low=0, high=3))
        shift = g.input([[0, 1, 2, 3, 7]], dtype)
        g.op("LeftShift", x=x, y=shift)
        g.op("RightShift", x=x, y=shift)
    for dtype in ("uint8", "uint16"):
        x, y = g.ints(3, 5, dtype=dtype, low=0, high=200), g.ints(3, 1, dtype=dtype, low=1, high=7)
        for name in ("Add", "Sub", "Mul", "Maximum", "Minimum", "FloorDiv", "TruncateDiv", "Less",
                     "GreaterEqual", "Equal", "BitwiseXor", "BitwiseOr", "LeftShift",
                     "RightShift"):  # fmt: skip
            if dtype == "uint16" and name in ("Add",):
                continue
            g.op(name, x=x, y=y)
    g.op("AddN", inputs=[g.ints(3, 2), g.ints(3, 2)])
    p, q = g.bools(3, 4), g.bools(4)
    for name in ("LogicalAnd", "LogicalOr", "Equal", "NotEqual"):
        g.op(name, x=p, y=q)


@group
def choices(g: Cases) -> None:
    for dtype in ("float32", "bfloat16", "int64", "bool"):

        def make(*dims: int, dtype: str = dtype) -> object:
            if dtype == "bool":
                return g.bools(*dims)
            return g.ints(*dims, dtype=dtype) if dtype == "int64" else g.floats(*dims, dtype=dtype)

        x, y = make(4, 3), make(4, 3)
        g.op("Select", condition=g.bools(4, 3), x=x, y=y)
        g.op("Select", condition=g.bools(4), x=x, y=y)
        g.op("Select", condition=g.input(True), x=x, y=y)
        g.op("SelectV2", condition=g.bools(2, 1, 3), t=x, e=make(1))


TYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
         "uint16", "uint32", "uint64", "bool")  # fmt: skip


@group
def casts(g: Cases) -> None:
    for source in TYPES:
        if source == "bool":
            x = g.bools(6)
        elif source.startswith("uint"):
            x = g.ints(6, dtype=source, low=0, high=120)
        elif source.startswith("int"):
            x = g.ints(6, dtype=source, low=-120, high=120)
        else:
            x = g.input([0.0, 1.5, 2.5, 100.75, 7.9, 0.49], source)
        for target in TYPES:
            if source != target:
                g.op("Cast", x=x, DstT=target)
    x = g.input([-1.5, -2.5, -100.75, -0.49, 3.99], "float32")
    for target in ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float64"):
        g.op("Cast", x=x, DstT=target)
    big = g.ints(6, dtype="int64", low=-(2**40), high=2**40)
    for target in ("int32", "int16", "uint8", "uint32"):  # integers wrap
        g.op("Cast", x=big, DstT=target)
    large = g.input([1e6, -1e6, 65504.0, 65520.0, np.inf, 3e38], "float32")
    g.op("Cast", x=large, DstT="float16")  # beyond the largest: infinity
    g.op("Cast", x=large, DstT="bfloat16")
    g.op("Cast", x=g.input([1e300, -1e300, 1.0], "float64"), DstT="float32")
    f = g.floats(3, 4)
    for target in ("int32", "uint32"):
        g.op("Bitcast", input=f, type=target)
    g.op("Bitcast", input=f, type="uint8")
    g.op("Bitcast", input=f, type="int16")
    g.op("Bitcast", input=g.ints(3, 4, dtype="int16"), type="int64")
    g.op("Bitcast", input=g.ints(3, 2, dtype="int32"), type="float64")
    g.op("Bitcast", input=g.floats(3, 4, dtype="float16"), type="bfloat16")

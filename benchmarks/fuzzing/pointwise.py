"""Growers of pointwise operators: arithmetic, comparisons, bits, casts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from benchmarks.fuzzing.graph import FLOATS, INTEGERS, UNSIGNED, Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows

GAP = 1e-3  # distance of a rounded value from an operator's discontinuity

# operator: attributes, and what its operand must be made first
UNARY: dict[str, tuple[dict[str, tuple[float, float]], str]] = {
    "Abs": ({}, ""), "Neg": ({}, ""), "Relu": ({}, ""), "Sigmoid": ({}, ""), "Tanh": ({}, ""),
    "Exp": ({}, "unit"), "Log": ({}, "positive"), "Sqrt": ({}, "positive"),
    "Reciprocal": ({}, "positive"), "Erf": ({}, ""), "Softplus": ({}, ""), "Softsign": ({}, ""),
    "Sin": ({}, ""), "Cos": ({}, ""), "Tan": ({}, "unit"), "Asin": ({}, "unit"),
    "Acos": ({}, "unit"), "Atan": ({}, ""), "Sinh": ({}, "unit"), "Cosh": ({}, "unit"),
    "Asinh": ({}, ""), "Acosh": ({}, "above"), "Atanh": ({}, "unit"),
    "Elu": ({"alpha": (0.2, 2)}, ""), "Selu": ({"alpha": (0.5, 2), "gamma": (0.5, 2)}, ""),
    "Celu": ({"alpha": (0.2, 2)}, ""), "LeakyRelu": ({"alpha": (-0.5, 0.9)}, ""),
    "HardSigmoid": ({"alpha": (0.1, 0.6), "beta": (0.1, 0.9)}, ""), "HardSwish": ({}, ""),
    "Mish": ({}, ""), "Gelu": ({}, ""), "Swish": ({"alpha": (0.3, 2)}, ""), "Identity": ({}, ""),
    "ThresholdedRelu": ({"alpha": (-0.5, 1)}, "jumps"), "Shrink": ({"lambd": (0.1, 1), "bias":
    (-0.5, 0.5)}, "jumps"), "Ceil": ({}, "whole"), "Floor": ({}, "whole"), "Round": ({}, "halves"),
    "Sign": ({}, "zero"), "IsNaN": ({}, ""), "IsInf": ({}, ""), "Dropout": ({}, ""),
}  # fmt: skip
EXACT = {"Abs", "Neg", "Relu", "Identity", "Ceil", "Floor", "Round", "Sign", "IsNaN", "IsInf",
         "Dropout"}  # fmt: skip


def made_safe(g: Graph, x: Value, how: str) -> Value:
    """`x`, moved to where an operator is tame."""
    if how == "unit" and not x.all(lambda a: np.abs(a) <= 0.95):
        return g.node("Mul", g.node("Tanh", x), g.const(np.asarray(0.9, x.dtype)))
    if how in ("positive", "above"):
        least = 0.1 if how == "positive" else 1.1
        if x.all(lambda a: a >= least):
            return x
        return g.node("Add", g.node("Abs", x), g.const(np.asarray(least + 0.1, x.dtype)))
    if how in ("whole", "halves", "zero", "jumps"):
        far_from_jumps(x, {"whole": 0.0, "halves": 0.5}.get(how), 0.0 if how == "zero" else None)
    return x


def far_from_jumps(x: Value, part: float | None, point: float | None) -> None:
    """Reject a rounded value where a jump is near: at whole numbers plus `part`, or at a point."""
    if x.exact or not x.is_float:
        return
    for a in x.arrays:
        wide = a.astype(np.float64)
        gap = GAP * 20 if a.dtype == np.float16 else GAP
        if part is not None:
            off = np.abs(wide - part - np.round(wide - part))
        elif point is not None:
            off = np.abs(wide - point)
        else:
            return
        if (off < gap * np.maximum(1, np.abs(wide) * 1e-2)).any():
            raise Rejected("near a jump")


@grows(12)
def unary(g: Graph) -> Any:
    op = g.pick(*[op for op in UNARY if g.has(op)])
    attributes, how = UNARY[op]
    if op in ("Abs", "Neg", "Sign", "Identity", "Relu") and g.coin(0.3):
        return g.node(op, g.value(kinds=INTEGERS), exact=True)
    if op == "Identity" and g.coin(0.2):
        return g.node(op, g.value(kinds=(np.bool_,)), exact=True)
    x = made_safe(g, g.floats(), how)
    more = {k: g.rng.uniform(*v) for k, v in attributes.items() if g.coin(0.7)}
    if op in ("ThresholdedRelu", "Shrink"):
        far_from_jumps(x, None, more.get("alpha", 1.0))
        far_from_jumps(x, None, more.get("lambd", 0.5))
        far_from_jumps(x, None, -more.get("lambd", 0.5))
    if op == "Gelu":
        more = {"approximate": g.pick("none", "tanh")}
    if op == "IsInf":
        more = {"detect_negative": g.size(0, 1), "detect_positive": g.size(0, 1)}
    return g.node(op, x, exact=op in EXACT, **more)


def partner(g: Graph, x: Value, low: Any = None, high: Any = None) -> Value:
    """A second operand for `x`, that broadcasts with it in some way."""

    def fits(v: Value) -> bool:
        try:
            return all(
                math.prod(np.broadcast_shapes(a, b)) < 4096
                for a, b in zip(v.dims, x.dims, strict=True)
            )
        except ValueError:
            return False

    same = [v for v in g.seen if v.dtype == x.dtype and fits(v)]
    if same and low is None and g.coin(0.6):
        return g.pick(*same)
    dims: list[Any] = [g.symbol(d) for d in zip(*x.dims, strict=True)]
    dims = [1 if g.coin(0.3) else d for d in dims]
    dims = dims[g.size(0, len(dims)) if g.coin(0.4) else 0 :]
    if not dims and g.coin(0.3):
        dims = [1] * g.size(1, 2)
    dims = [1 if isinstance(d, str) and d not in g.worlds[0] else d for d in dims]
    bounds = {} if low is None else {"low": low, "high": high}
    if all(not isinstance(d, str) for d in dims) and g.coin(0.6):
        return g.const(g.numbers(dims, x.dtype, **bounds))
    return g.input(dims, x.dtype, **bounds)


def shuffled(g: Graph, *values: Value) -> list[Value]:
    return list(values) if g.coin(0.6) else list(reversed(values))


def whole(*values: Value) -> bool:
    """Return whether all are exact small whole numbers, so that sums and products are exact."""
    return all(
        v.exact and (not v.is_float or v.all(lambda a: (a == np.round(a)) & (np.abs(a) < 512)))
        for v in values
    )


@grows(8)
def binary(g: Graph) -> Any:
    op = g.pick("Add", "Sub", "Mul", "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow")
    x = g.value(kinds=INTEGERS) if g.coin(0.15) else g.floats()
    integers = not x.is_float
    if op == "Div":
        y = partner(g, x, 1, 9) if g.coin(0.5) else partner(g, x)
        if not y.all(lambda a: np.abs(a) > 0.05):
            y = made_safe(g, y, "positive") if not integers else partner(g, x, 1, 9)
        return g.node(op, x, y, exact=integers or whole(x, y))
    if op == "Pow":
        if g.coin(0.6):
            y = g.const(
                np.asarray(g.pick(2, 3, 1, 0, *(() if integers else (0.5, -1, 1.5, 4))), x.dtype)
            )
            if float(y.arrays[0]) not in (0, 1, 2, 3, 4):
                x = made_safe(g, x, "positive")
            return g.node(op, x, y, exact=integers)
        if integers:
            return g.node(op, x, partner(g, x, 0, 3), exact=True)
        return g.node(op, made_safe(g, x, "positive"), partner(g, x, -2, 2))
    if op in ("Max", "Min", "Sum", "Mean"):
        values = [x, *(partner(g, x) for _ in range(g.size(0, 3)))]
        return g.node(op, *values, exact=op in ("Max", "Min") or (op == "Sum" and whole(*values)))
    y = x if g.coin(0.07) else partner(g, x)
    return g.node(op, *shuffled(g, x, y), exact=integers or whole(x, y))


@grows(3)
def compare(g: Graph) -> Any:
    op = g.pick("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    kinds = (g.pick(np.float32, np.float32, np.int64, np.int32, np.float64, *INTEGERS),)
    x = g.value(kinds=kinds)
    y = partner(g, x)
    if not (x.exact and y.exact) and x.is_float:
        for a, b in zip(x.arrays, y.arrays, strict=True):
            if (np.abs(a.astype(np.float64) - b) < GAP * (1 + np.abs(a))).any():
                raise Rejected("a comparison of near values")
    return g.node(op, *shuffled(g, x, y), exact=True)


@grows(3)
def logic(g: Graph) -> Any:
    x = g.value(kinds=(np.bool_,))
    if g.coin(0.3):
        return g.node("Not", x, exact=True)
    return g.node(g.pick("And", "Or", "Xor"), *shuffled(g, x, partner(g, x)), exact=True)


@grows(3)
def bits(g: Graph) -> Any:
    op = g.pick("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift")
    x = g.value(kinds=(g.pick(*(UNSIGNED if op == "BitShift" else INTEGERS)),))
    if op == "BitwiseNot":
        return g.node(op, x, exact=True)
    if op == "BitShift":
        y = partner(g, x, 0, 7)
        return g.node(op, x, y, direction=g.pick("LEFT", "RIGHT"), exact=True)
    return g.node(op, *shuffled(g, x, partner(g, x)), exact=True)


@grows(2)
def mod(g: Graph) -> Any:
    if g.coin(0.4):
        x = g.value(kinds=(np.float32,), test=lambda v: v.exact)
        y = (
            g.const(np.asarray(g.pick(2, 3, 0.5, 7), np.float32))
            if g.coin()
            else partner(g, x, 1, 7)
        )
        return g.node("Mod", x, y, fmod=1, exact=True)
    x = g.value(kinds=(g.pick(*INTEGERS),))
    y = partner(g, x, 1, 7)
    if x.dtype.kind == "i" and g.coin(0.3):
        y = g.node("Neg", y, exact=True)
    return g.node("Mod", x, y, fmod=g.pick(0, 0, 1), exact=True)


@grows(2)
def select(g: Graph) -> Any:
    x = g.value(kinds=(g.pick(np.float32, np.float32, *FLOATS, *INTEGERS, np.bool_),))
    y = partner(g, x)
    if g.has("Where"):
        shape = np.broadcast_shapes(x.dims[0], y.dims[0])
        conds = [v for v in g.seen if v.dtype == np.bool_ and fits_all(v, x, y)]
        if conds and g.coin(0.7):
            c = g.pick(*conds)
        elif x.static and y.static and g.coin():
            c = g.const(g.numbers([d if g.coin(0.7) else 1 for d in shape], np.bool_))
        else:
            c = g.const(g.numbers([1] * g.size(0, 2), np.bool_))
        return g.node("Where", c, *shuffled(g, x, y), exact=True)
    raise Rejected("no Where")


def fits_all(*values: Value) -> bool:
    try:
        return all(
            math.prod(np.broadcast_shapes(*d)) < 4096
            for d in zip(*(v.dims for v in values), strict=True)
        )
    except ValueError:
        return False


@grows(1.5)
def clip(g: Graph) -> Any:
    low, high = g.pick((-1.0, 1.0), (0.0, 6.0), (-0.5, 0.25), (1.0, -1.0), (0.0, 0.0))
    if g.opset < 11:
        more = {k: v for k, v in (("min", low), ("max", high)) if g.coin(0.8)}
        return g.node("Clip", g.floats(), exact=True, **more)
    x = g.value(kinds=INTEGERS) if g.coin(0.2) and g.opset >= 12 else g.floats()
    if not x.is_float:
        low, high = 1, 5
    ends = [g.numbers_of(v, x.dtype) if g.coin(0.75) else None for v in (low, high)]
    return g.node("Clip", x, *ends, exact=True)


@grows(1)
def prelu(g: Graph) -> Any:
    x = g.floats(low=1)
    slope = [1 if g.coin() else d for d in (x.extent(a) or 1 for a in range(x.rank))]
    slope = slope[g.size(0, len(slope) - 1) :]
    return g.node("PRelu", x, g.operand(g.numbers(slope, x.dtype)))


TYPES = (*FLOATS, *FLOATS, *INTEGERS, np.int64, np.int32, np.bool_)


@grows(4)
def cast(g: Graph) -> Any:
    x = g.value(kinds=TYPES)
    to = np.dtype(g.pick(*TYPES))
    if x.is_float and to.kind in "iu":
        far_from_jumps(x, 0.0, None)
        info = np.iinfo(to)
        top = min(info.max, 30000 if x.dtype == np.float16 else 2**31 - 256)
        if not x.all(lambda a: (a > max(info.min, -top)) & (a < top)):
            raise Rejected("beyond the type")  # undefined in ONNX
    if x.is_float and to == np.bool_:
        far_from_jumps(x, None, 0.0)
    if g.coin(0.2) and g.has("CastLike"):
        return g.node("CastLike", x, g.const(g.numbers([g.size(0, 2)], to)), exact=True)
    if g.coin(0.12) and x.is_float and g.opset >= 13:
        return g.node(
            "Cast",
            g.node("Cast", x, to=TensorProto.BFLOAT16, exact=True),
            to=TensorProto.FLOAT,
            exact=True,
        )
    narrows = x.is_float and to.kind == "f" and to.itemsize < x.dtype.itemsize
    return g.node("Cast", x, to=helper.np_dtype_to_tensor_dtype(to), exact=not narrows or x.exact)


@grows(1)
def chains(g: Graph) -> Any:
    """A few simple ops in a row: what fuses."""
    x = g.value(kinds=(np.float32,))
    for _ in range(g.size(2, 5)):
        op = g.pick("Add", "Mul", "Sub", "Relu", "Sigmoid", "Tanh", "Neg", "Max", "Min", "Sqrt")
        if op in ("Add", "Mul", "Sub", "Max", "Min"):
            x = g.node(op, *shuffled(g, x, partner(g, x)))
        else:
            x = g.node(op, made_safe(g, x, "positive" if op == "Sqrt" else ""))
    return x

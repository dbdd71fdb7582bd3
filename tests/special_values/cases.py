"""Operators on special values: nodes whose results' row i depends on their inputs' row i."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.support.models import bytes_of

TYPES = {
    "f32": (np.dtype(np.float32), TensorProto.FLOAT),
    "f64": (np.dtype(np.float64), TensorProto.DOUBLE),
    "f16": (np.dtype(np.float16), TensorProto.FLOAT16),
    "bf16": (np.dtype(ml_dtypes.bfloat16), TensorProto.BFLOAT16),
    "i8": (np.dtype(np.int8), TensorProto.INT8),
    "u8": (np.dtype(np.uint8), TensorProto.UINT8),
    "i16": (np.dtype(np.int16), TensorProto.INT16),
    "i32": (np.dtype(np.int32), TensorProto.INT32),
    "u32": (np.dtype(np.uint32), TensorProto.UINT32),
    "i64": (np.dtype(np.int64), TensorProto.INT64),
    "bool": (np.dtype(np.bool_), TensorProto.BOOL),
    "e4m3": (np.dtype(ml_dtypes.float8_e4m3fn), TensorProto.FLOAT8E4M3FN),
    "e5m2": (np.dtype(ml_dtypes.float8_e5m2), TensorProto.FLOAT8E5M2),
}
FLOATS = ("f32", "f64", "f16", "bf16")


def specials(kind: str) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of the normal and subnormal numbers, and common ones."""
    dtype = TYPES[kind][0]
    if kind == "bool":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        found = {info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max}
        return np.array(sorted(found | ({-1, -3} if info.min else set())), dtype)
    info: Any = ml_dtypes.finfo(dtype)
    top, least, tiny = (float(x) for x in (info.max, info.smallest_subnormal, info.tiny))
    sizes = [0, 1, 0.5, 1.5, 2.5, 0.1, 3.14159274, 10.3, 87.5, 100, 41 / 3, top, top / 2, tiny]
    sizes += [least, tiny / 3, np.inf]
    if kind in ("f32", "f64"):
        sizes += [1e9, 2.0**31, 2.0**63, 1e20, 1e-20, 8388609.5, 65519, 65520, 70000]
    found = np.array([*sizes, *(-s for s in sizes), np.nan]).astype(dtype)
    return found[np.isfinite(found.astype(np.float64)) | ~np.isfinite([*sizes, *sizes, np.nan])]


@dataclass(frozen=True)
class Case:
    """One node: its operator, inputs by name, constants, attributes, and the type of its result."""

    op: str
    inputs: tuple[str, ...]
    out: str
    held: dict[str, np.ndarray] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    result: int = 0  # index of the checked result
    tag: str = ""

    @property
    def name(self) -> str:
        return self.op + self.tag


UNARY = (
    "Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Sin",
    "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf",
    "Sigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Softplus", "Softsign", "HardSigmoid",
    "HardSwish", "Mish", "Gelu", "ThresholdedRelu",
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu")
TESTS = ("Equal", "Less", "Greater", "LessOrEqual")


def pointwise(kind: str) -> tuple[list[Case], dict[str, np.ndarray]]:
    """Return cases of every special value, and of every pair of some."""
    x = specials(kind)
    few = x[:: max(1, len(x) // 16)]
    few = np.unique(np.concatenate([few, x[[0, 16, -1]], -x[[0, 16]]]).view(f"u{x.itemsize}"))
    few = few.view(x.dtype)
    a, b = (np.array(v, x.dtype) for v in zip(*itertools.product(few, few), strict=True))
    cases = [Case(op, ("x",), kind) for op in UNARY]
    cases.append(Case("Gelu", ("x",), kind, attributes={"approximate": "tanh"}, tag=".tanh"))
    cases += [Case(op, ("x",), "bool") for op in ("IsNaN", "IsInf")]
    ends = {"lo": np.array(-1, x.dtype), "hi": np.array(1, x.dtype)}
    cases.append(Case("Clip", ("x", "lo", "hi"), kind, ends))
    cases += [Case(op, ("a", "b"), kind) for op in BINARY]
    cases += [Case(op, ("a", "b"), "bool") for op in TESTS]
    cases.append(Case("Mod", ("a", "b"), kind, attributes={"fmod": 1}))
    return cases, {"x": x, "a": a, "b": b}


REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


def rows(kind: str) -> tuple[list[Case], dict[str, np.ndarray]]:
    """A special value, or two, in a row of common ones: reductions, norms, windows, products."""
    dtype = TYPES[kind][0]
    x = specials(kind)
    r = np.tile(np.array([0.5, -1.25, 2, 0.75, -3, 1], dtype), (2 * len(x) + 2, 1))
    r[: len(x), 2] = x
    r[len(x) : -2, 1], r[len(x) : -2, 4] = x, x[::-1]
    r[-1] = np.nan
    axes = {"axes": np.array([1])}
    w = np.array([[1, -2], [0.5, 1], [1, 1], [-1, 0.25], [2, 1], [0.5, 0.5]], dtype)
    cases = [Case(op, ("r", "axes"), kind, axes) for op in REDUCTIONS]
    cases += [
        Case("Softmax", ("r",), kind), Case("LogSoftmax", ("r",), kind),
        Case("ArgMax", ("r",), "i64", attributes={"axis": 1}),
        Case("ArgMin", ("r",), "i64", attributes={"axis": 1}),
        Case("TopK", ("r", "k"), kind, {"k": np.array([3])}, tag=".values"),
        Case("CumSum", ("r", "axis"), kind, {"axis": np.array(1)}),
        Case("LayerNormalization", ("r", "g"), kind, {"g": np.ones(6, dtype)}),
        Case("LpNormalization", ("r",), kind, attributes={"axis": 1}),
        Case("MatMul", ("r", "w"), kind, {"w": w}),
        Case("Gemm", ("r", "w", "c"), kind, {"w": w, "c": np.ones(2, dtype)}),
    ]  # fmt: skip
    image = r.reshape(-1, 1, 1, 6)
    window: dict[str, Any] = {"kernel_shape": [1, 3], "pads": [0, 1, 0, 1]}
    cases += [
        Case("Conv", ("image", "kernel"), kind, {"kernel": w[:3].reshape(2, 1, 1, 3)},
             {"pads": [0, 1, 0, 1]}),
        Case("MaxPool", ("image",), kind, attributes=window),
        Case("AveragePool", ("image",), kind, attributes=window),
        Case("GlobalAveragePool", ("image",), kind),
        Case("GlobalMaxPool", ("image",), kind),
        Case("Resize", ("image", "", "", "sizes"), kind,
             {"sizes": np.array([len(image), 1, 1, 9])}, {"mode": "linear"}),
    ]  # fmt: skip
    return cases, {"r": r, "image": image}


def casts(kind: str) -> tuple[list[Case], dict[str, np.ndarray]]:
    """From one type to every other, and quantisation."""
    to = [k for k in TYPES if k != kind]
    cases = [Case("Cast", ("x",), k, attributes={"to": TYPES[k][1]}, tag=f".{k}") for k in to]
    if kind == "f32":
        held = {"scale": np.array(0.1, np.float32)}
        for k in ("i8", "u8"):
            zero = {f"zero.{k}": np.array(3, TYPES[k][0])}
            cases.append(
                Case("QuantizeLinear", ("x", "scale", f"zero.{k}"), k, held | zero, tag=f".{k}")
            )
    return cases, {"x": specials(kind)}


def attention(kind: str) -> tuple[list[Case], dict[str, np.ndarray]]:
    """Queries, keys and values of one head with a special value in one of them."""
    dtype = TYPES[kind][0]
    x = specials(kind)
    rng = np.random.default_rng(0)
    q, k, v = (rng.uniform(-1, 1, (3 * len(x), 1, 3, 4)).astype(dtype) for _ in range(3))
    n = len(x)
    q[:n, 0, 1, 2], k[n : 2 * n, 0, 1, 2], v[2 * n :, 0, 1, 2] = x, x, x
    return [Case("Attention", ("q", "k", "v"), kind)], {"q": q, "k": k, "v": v}


GROUPS = {"pointwise": pointwise, "rows": rows, "casts": casts, "attention": attention}


def model_of(cases: list[Case], arrays: dict[str, np.ndarray], kind: str) -> bytes:
    """One model of all cases, result i of case i; inputs of the type `kind`."""
    nodes, held = [], {}
    for i, c in enumerate(cases):
        held |= {f"{k}.{i}": numpy_helper.from_array(v, f"{k}.{i}") for k, v in c.held.items()}
        names = [f"{n}.{i}" if n in c.held else n for n in c.inputs]
        outs = [f"y{i}"] if c.op != "TopK" else [f"y{i}", f"at{i}"]
        nodes.append(helper.make_node(c.op, names, outs, **c.attributes))
    used = {n for c in cases for n in c.inputs}
    inputs = {n: (TYPES[kind][1], list(a.shape)) for n, a in arrays.items() if n in used}
    outputs = {f"y{i}": (TYPES[c.out][1], None) for i, c in enumerate(cases)}
    return bytes_of(nodes, inputs, outputs, held, opset=23, ir_version=10)

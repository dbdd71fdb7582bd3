"""References of pointwise operators against onnxruntime, or a formula where ONNX has no such op."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.op import OPS, Pointwise
from tests.support.ops import evaluate
from tests.support.oracle import NotImplementedByOracle, run_node

ONNX = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "elu": "Elu",
    "erf": "Erf", "exp": "Exp", "floor": "Floor", "isinf": "IsInf", "isnan": "IsNaN",
    "leaky_relu": "LeakyRelu", "log": "Log", "nearbyint": "Round", "neg": "Neg", "not": "Not",
    "recip": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "add": "Add", "sub": "Sub",
    "mul": "Mul", "div": "Div", "pow": "Pow", "max": "Max", "min": "Min", "prelu": "PRelu",
    "fmod": "Mod", "equal": "Equal", "greater": "Greater", "less": "Less",
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "bitwise_and": "BitwiseAnd",
    "where": "Where",
}  # fmt: skip
DEFAULTS = {"elu": {"alpha": 1.0}, "leaky_relu": {"alpha": 0.01}, "fmod": {"fmod": 1}}
TRAPS = ("div", "mod", "fmod", "pow")  # integers: tested exactly in test_scalar_forms


def _close(found: np.ndarray, want: np.ndarray, message: str) -> None:
    assert found.shape == want.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, want.astype(found.dtype), err_msg=message)
        return
    rtol = {"float64": 1e-12, "float32": 2e-6, "float16": 1.5e-3}.get(found.dtype.name, 1e-2)
    np.testing.assert_allclose(
        found.astype(float), want.astype(float), rtol=rtol, atol=rtol * 0.1, err_msg=message
    )


@pytest.mark.parametrize("name", list(ONNX))
def test_against_onnxruntime(name: str) -> None:
    """Every example whose types onnxruntime knows; f32 (or bool) is always among them."""
    seen: set[str] = set()
    for operands, attributes in OPS[name].examples():
        kind = operands[-1].dtype
        if name in TRAPS and kind.kind in "iu":
            continue
        given = {**DEFAULTS.get(name, {}), **attributes}
        try:
            want = run_node(ONNX[name], *operands, **given)
        except NotImplementedByOracle:
            continue
        found = evaluate(name, *operands, **attributes)
        if name == "sign":  # onnxruntime gives 0 for NaN in some types; ours keeps it
            number = ~np.isnan(found.astype(float))
            found, want = np.where(number, found, 0), np.where(number, want, 0)
        _close(found, want, f"{name} {operands} {attributes}")
        seen.add(kind.name)
    expected = "bool" if name in ("not", "logical_and", "logical_or", "logical_xor") else "float32"
    assert (expected if name != "bitwise_and" else "int32") in seen


def _python_modulo(x: Any, y: Any) -> Any:
    if y == 0:
        return 0 if isinstance(x, int) else np.nan
    return x % y


FORMULAS: dict[str, Any] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "log2": lambda x: np.log(x) / np.log(np.longdouble(2)),
    "mod": lambda x, y: np.array(
        [_python_modulo(a, b) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    ).reshape(x.shape),
    "sqdiff": lambda x, y: (x - y) * (x - y),
    "clip": lambda x, low, high: np.where(
        np.isnan(x), x, np.where(x > high, high, np.where(x < low, np.minimum(low, high), x))
    ),
}


@pytest.mark.parametrize("name", list(FORMULAS))
def test_against_formula(name: str) -> None:
    count = 0
    for operands, attributes in OPS[name].examples():
        if operands[0].dtype.kind in "iu" and name in ("sqdiff", "mod"):
            wide = [v.astype(object) for v in operands]  # unbounded integers, wrapped after
            bits = operands[0].dtype.itemsize * 8
            exact = np.array(FORMULAS[name](*wide), object) % (1 << bits)
            want = exact.astype(f"u{bits // 8}").view(operands[0].dtype)
        else:
            with np.errstate(all="ignore"):
                want = FORMULAS[name](*(v.astype(np.longdouble) for v in operands))
        _close(evaluate(name, *operands, **attributes), np.asarray(want), f"{name} {operands}")
        count += 1
    assert count >= 8


@pytest.mark.parametrize("dims", [(), (1,), (0,), (2, 0, 3), (2, 1, 3, 2)])
def test_any_rank_and_empty(dims: tuple[int, ...]) -> None:
    x = np.full(dims, 0.5, np.float32)
    for name, cls in OPS.items():
        if not issubclass(cls, Pointwise) or name in ("bit_cast", "where"):
            continue
        operands = [x] * len([g for g in cls.OPERANDS if g.arity == "single"])
        if not hasattr(cls, "TYPES") or dtypes.FLOAT in cls.TYPES:
            if name == "dequantizelinear":
                operands[0] = x.astype(np.int8)
            assert evaluate(name, *operands).shape == dims
            assert evaluate(name, *operands, dynamic=True).shape == dims


def test_compute_in_f64() -> None:
    """A 16-bit operand on request is computed in f64, so that the result is rounded once."""
    x = np.linspace(-4, 4, 1000).astype(ml_dtypes.bfloat16)
    for name, f in (("exp", np.exp), ("tanh", np.tanh), ("sin", np.sin)):
        want = f(x.astype(np.float64)).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(evaluate(name, x, compute="f64"), want)


# ---- convert -------------------------------------------------------------------------------------


def test_convert_to_integers_saturates() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -2.9, -0.5, 255.5, 3e9], np.float32)
    for target in dtypes.INTEGERS:
        low, high = int(target.lowest()), int(target.highest())
        found = evaluate("convert", x, target_type=target)
        want = [0 if v != v else int(min(max(v, low), high)) for v in x.astype(float)]
        assert [int(v) for v in found] == want, target.name


def test_convert_floats_saturate() -> None:
    x = np.array([1e6, -1e6, np.inf, -np.inf, np.nan, 65519, 65520, 1.0, 1e-9], np.float32)
    half = evaluate("convert", x, target_type=dtypes.HALF)
    np.testing.assert_array_equal(
        half.astype(float), [65504, -65504, np.inf, -np.inf, np.nan, 65504, 65504, 1, 0]
    )
    big = np.array([1e300, -1e300, np.inf, np.nan])
    top = float(np.finfo(np.float32).max)
    np.testing.assert_array_equal(
        evaluate("convert", big, target_type=dtypes.FLOAT), np.float32([top, -top, np.inf, np.nan])
    )


@pytest.mark.parametrize("target", [d for d in dtypes.FLOATS if d.size == 1], ids=str)
def test_convert_to_f8_is_onnx_cast(target: Any) -> None:
    """ONNX's table for saturating casts: infinities become the largest value."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.normal(0, 300, 500), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e9, -1e9, 1e-9]]
    ).astype(np.float32)
    info: Any = ml_dtypes.finfo(target.np)
    found = evaluate("convert", x, target_type=target)
    want = run_node("Cast", x, to=target.onnx, opset=19, widen=True)
    np.testing.assert_array_equal(found.astype(float), want.astype(float))
    assert float(found[-3]) == float(info.max)


def test_convert_wraps_integers_and_tests_bools() -> None:
    x = np.array([300, -1, 0, 127, 128, -129], np.int64)
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        target = dtypes.from_numpy(kind)
        np.testing.assert_array_equal(evaluate("convert", x, target_type=target), x.astype(kind))
    assert (
        evaluate("convert", x, target_type=dtypes.BOOL).tolist() == [True, True, False] + [True] * 3
    )
    f = np.array([0.0, -0.0, np.nan, 0.1, np.inf], np.float32)
    assert evaluate("convert", f, target_type=dtypes.BOOL).tolist() == [False, False] + [True] * 3
    np.testing.assert_array_equal(
        evaluate("convert", x, target_type=dtypes.HALF), x.astype(np.float16)
    )

"""Values that stay in f32 where a program is brought to bf16: sums, norms, angles, moved rows."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

import mgx_mlir
from tests.support.models import model_of, node

LAYERS, ROWS, WIDTH = 24, 16, 64


def _stack() -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """Return x + dot(norm(x)) many times, with an input and its result in f64."""
    numbers = np.random.default_rng(1)
    x = numbers.standard_normal((ROWS, WIDTH)).astype(np.float32)
    one, zero = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    weights: dict[str, np.ndarray] = {"g": one, "z": zero}
    nodes, at, found = [], "x", x.astype(np.float64)
    for i in range(LAYERS):
        # numbers that bf16 holds, so that only activations are rounded
        w = (numbers.integers(-8, 9, (WIDTH, WIDTH)) / 256).astype(np.float32)
        weights[f"w{i}"] = w
        nodes += [
            node("LayerNormalization", f"{at} g z", f"n{i}", axis=-1),
            node("MatMul", f"n{i} w{i}", f"d{i}"),
            node("Add", f"{at} d{i}", f"x{i}" if i < LAYERS - 1 else "y"),
        ]
        at = f"x{i}"
        apart = found - found.mean(-1, keepdims=True)
        normed = apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5)
        found = found + normed @ w.astype(np.float64)
    kind = (TensorProto.FLOAT, [ROWS, WIDTH])
    return model_of(nodes, {"x": kind}, {"y": kind}, weights, opset=18), x, found


def _error(program: mgx_mlir.program, x: np.ndarray, want: np.ndarray) -> float:
    (found,) = mgx_mlir.compile(program, target="cpu", cache=False).run({"x": x})
    return float(np.sqrt(np.mean((found - want) ** 2) / np.mean(want**2)))


def test_a_deep_stream() -> None:
    """A layer rounds what it adds, and not the whole sum again."""
    model, x, want = _stack()
    wide, narrow = (mgx_mlir.parse_onnx_buffer(model.SerializeToString()) for _ in range(2))
    mgx_mlir.quantize_bf16(wide)
    # ops that are listed are all in bf16
    mgx_mlir.quantize_bf16(narrow, ["add", "sub", "mul", "div", "rsqrt", "reduce_mean", "dot"])
    errors = _error(wide, x, want), _error(narrow, x, want)
    assert errors[0] < 0.5 * errors[1]
    assert errors[0] < 3e-3


def test_weights_of_norms_stay() -> None:
    """A norm's weights meet all rows, and their rounding does not average out."""
    rng = np.random.default_rng(4)
    x, g = (rng.standard_normal(n).astype(np.float32) for n in ((ROWS, WIDTH), WIDTH))
    nodes = [
        node("Add", "x x2", "sum"),
        node("LayerNormalization", "sum g z", "y", axis=-1),
    ]
    kind = (TensorProto.FLOAT, [ROWS, WIDTH])
    weights = {"g": g, "z": g + np.float32(0.1)}
    model = model_of(nodes, {"x": kind, "x2": kind}, {"y": kind}, weights, opset=18)
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    mgx_mlir.quantize_bf16(program)
    (found,) = mgx_mlir.compile(program, target="cpu", cache=False).run({"x": x, "x2": x[::-1]})
    total = (x + x[::-1]).astype(np.float64)
    total -= total.mean(-1, keepdims=True)
    want = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * g + weights["z"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_angles_stay_wide() -> None:
    """Positions by frequencies, joined: sin and cos of angles up to 1000."""
    frequencies = (10.0 ** -np.arange(4)).astype(np.float32)
    nodes = [
        node("Mul", "p f", "half"),
        node("Concat", "half half", "angle", axis=1),
        node("Cos", "angle", "c"),
        node("Sin", "angle", "s"),
        node("Mul", "c s", "y"),
    ]
    inputs = {"p": (TensorProto.FLOAT, [1000, 1])}
    outputs = {"y": (TensorProto.FLOAT, [1000, 8])}
    model = model_of(nodes, inputs, outputs, {"f": frequencies}, opset=18)
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    mgx_mlir.quantize_bf16(program)
    at = np.arange(1000, dtype=np.float32)[:, None]
    (found,) = mgx_mlir.compile(program, target="cpu", cache=False).run({"p": at})
    angle = np.tile(at * frequencies, 2).astype(np.float64)
    # the two factors and the result are rounded to 8 bits
    np.testing.assert_allclose(found, np.cos(angle) * np.sin(angle), atol=6e-3)


def test_rows_of_a_cache_stay() -> None:
    """Rows that a result takes from an input are the input's, beside new ones that are rounded."""
    rng = np.random.default_rng(6)
    old, x, w = (
        rng.standard_normal(n).astype(np.float32) for n in ((30, WIDTH), (2, WIDTH), (WIDTH, WIDTH))
    )
    nodes = [
        node("MatMul", "x w", "new"),
        node("Concat", "old new", "rows", axis=0),
        node("MatMul", "rows w", "y"),
    ]
    kinds = {n: (TensorProto.FLOAT, list(v.shape)) for n, v in (("old", old), ("x", x))}
    outputs = {n: (TensorProto.FLOAT, [32, WIDTH]) for n in ("rows", "y")}
    model = model_of(nodes, kinds, outputs, {"w": w}, opset=18)
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    mgx_mlir.quantize_bf16(program)
    compiled = mgx_mlir.compile(program, target="cpu", cache=False)
    rows, y = compiled.run({"old": old, "x": x})
    np.testing.assert_array_equal(rows[:30], old)
    new = x.astype(np.float64) @ w
    assert 1e-5 < np.abs(rows[30:] - new).max() / np.abs(new).max() < 8e-3
    assert np.abs(y[:30] - old.astype(np.float64) @ w).max() < 0.2

"""Sums that norms read stay in f32 where a program is brought to bf16."""

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

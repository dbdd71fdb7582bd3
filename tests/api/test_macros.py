"""Macros against formulas in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.api.macros import macros
from mgx_mlir.core.errors import ShapeError
from tests.support.oracle import run_node

RNG = np.random.default_rng(0)


def normal(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims).astype("f4")


def run(name: str, *arrays: np.ndarray, **options: object) -> list[np.ndarray]:
    """A macro on parameters, all its results."""
    p = migraphx.program()
    m = p.get_main_module()
    args = [
        m.add_parameter(f"x{i}", migraphx.argument(a).get_shape()) for i, a in enumerate(arrays)
    ]
    m.add_return(m.add_macro(migraphx.macro(name, **options), args))
    return [np.asarray(a) for a in p.run({f"x{i}": a for i, a in enumerate(arrays)})]


X = normal(2, 3, 4, 4)
A, B = normal(3, 4), normal(4, 5)
SCALE, BIAS, MEAN, VAR = normal(3), normal(3), normal(3), np.abs(normal(3))
Q = RNG.integers(-9, 9, (2, 3)).astype("i1")
ERF = np.vectorize(math.erf)


def channel(v: np.ndarray) -> np.ndarray:
    return v.reshape(1, 3, 1, 1)


def gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + ERF(x / math.sqrt(2)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def normalized(x: np.ndarray) -> np.ndarray:
    return (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)


Case = tuple[str, list[np.ndarray], dict[str, object], Callable[[], np.ndarray]]
CASES: list[Case] = [
    ("batchnorm", [X, SCALE, BIAS, MEAN, VAR], {"epsilon": 0.1}, lambda: (
        (X - channel(MEAN)) / np.sqrt(channel(VAR) + 0.1) * channel(SCALE) + channel(BIAS))),
    ("celu", [X], {"alpha": 2.0}, lambda: np.where(X > 0, X, 2 * np.expm1(np.minimum(X, 0) / 2))),
    ("clip", [X, np.array(-0.5, "f4"), np.array(0.5, "f4")], {}, lambda: np.clip(X, -0.5, 0.5)),
    ("dot", [normal(2, 1, 3, 4) * 0 + 1, np.ones((5, 4, 2), "f4")], {},
     lambda: np.full((2, 5, 3, 2), 4.0)),
    ("quant_dot", [Q, Q.T.copy()], {}, lambda: Q.astype(int) @ Q.T.astype(int)),
    ("einsum", [A, B], {"equation": "ij,jk->ki"}, lambda: (A @ B).T),
    ("gemm", [A.T.copy(), B, np.ones(5, "f4")], {"alpha": 2.0, "beta": 3.0, "transA": True},
     lambda: 2 * A @ B + 3),
    ("gelu_quick", [X], {"alpha": 1.702}, lambda: X / (1 + np.exp(-1.702 * X))),
    ("gelu_erf", [X], {}, lambda: gelu(X)),
    ("gelu_tanh", [X], {}, lambda: gelu_tanh(X)),
    ("gelu_tanh", [X], {"fast": True}, lambda: gelu_tanh(X)),
    ("gelu_split", [X], {}, lambda: X[..., :2] * gelu(X[..., 2:])),
    ("mean_variance_normalization", [X], {}, lambda: normalized(X)),
    ("add", [X, np.ones((4, 1), "f4")], {}, lambda: X + 1),
    ("mul", [X, SCALE], {"broadcasted": 1, "axis": 1, "is_broadcasted": True},
     lambda: X * channel(SCALE)),
    ("quantizelinear", [X, np.array(0.1, "f4"), np.array(3, "i1")], {},
     lambda: np.clip(np.rint(X / np.float32(0.1)) + 3, -128, 127)),
    ("quantizelinear", [X, np.array(0.1, "f4")], {"output_type": "int8"},
     lambda: np.clip(np.rint(X / np.float32(0.1)), -128, 127)),
    ("dequantizelinear", [Q, SCALE], {"axis": 1}, lambda: Q * SCALE),
    ("tile", [A], {"repeats": [2, 3]}, lambda: np.tile(A, (2, 3))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_macros(case: Case) -> None:
    name, arrays, options, want = case
    found = run(name, *arrays, **options)
    assert len(found) == 1
    np.testing.assert_allclose(found[0].astype("f8"), want(), rtol=1e-5, atol=3e-6)


def test_convolution() -> None:
    w, bias = normal(5, 3, 3, 2), normal(5)
    for options, attributes in (
        ({"paddings": [1, 0], "strides": [2, 1]}, {"pads": [1, 0, 1, 0], "strides": [2, 1]}),
        ({"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_UPPER"}),
        ({"padding_mode": 1}, {"auto_pad": "SAME_LOWER"}),
        ({"dilations": [1, 2], "paddings": [0, 1, 2, 3]},
         {"dilations": [1, 2], "pads": [0, 1, 2, 3]}),
    ):  # fmt: skip
        want = run_node("Conv", X, w, bias, **attributes)
        got = run("convolution", X, w, bias, **options)[0]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved: bool) -> None:
    x, cos, sin = normal(2, 2, 3, 4), normal(10, 2), normal(10, 2)
    start = np.array([2, 5])
    got = run("rotary_embedding", x, start, cos, sin, interleaved=interleaved)[0]
    want = np.empty_like(x)
    left, right = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(2), slice(2, 4))
    for b in range(2):
        c, s = cos[start[b] : start[b] + 3], sin[start[b] : start[b] + 3]
        want[b][..., left] = x[b][..., left] * c - x[b][..., right] * s
        want[b][..., right] = x[b][..., right] * c + x[b][..., left] * s
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_bias_uint8() -> None:
    x, bias = np.array([0, 128, 200], "u1"), np.array([10, 10, 10], "u1")
    shifted, result = run("bias_uint8", x, bias, has_bias=True)
    assert shifted.tolist() == [-128, 0, 72]
    assert result[1:].tolist() == [118, (72 + 118 + 128) % 256 - 128]


def test_macros_go_where_they_are_put() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    y = m.add_instruction(migraphx.op("neg"), [x])
    m.insert_macro(y, migraphx.macro("gelu_quick"), [x])
    assert [i.name() for i in m][-2:] == ["mul", "neg"]
    m.add_return([y])
    m.add_macro(migraphx.macro("add"), [x, y])  # ahead of the return
    assert [i.name() for i in m][-2:] == ["add", "@return"]


def test_wrong_macros() -> None:
    assert "gelu_erf" in macros()
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3]))
    for call, message in (
        (lambda: migraphx.macro("gelu_er"), "did you mean 'gelu_erf'"),
        (lambda: migraphx.macro("celu", beta=1), "no option 'beta'"),
        (lambda: m.add_macro(migraphx.macro("celu"), [x, x]), "expected 1 inputs, got 2"),
        (lambda: m.add_macro(migraphx.macro("gelu_split"), [x]), "even last extent, got 3"),
        (lambda: m.add_macro(migraphx.macro("tile", repeats=[1]), [x]), "expected 2 numbers"),
    ):
        with pytest.raises(ShapeError) as e:
            call()
        assert message in str(e.value)
    assert repr(migraphx.macro("celu", alpha=2.0)) == "celu[alpha=2.0]"
    assert migraphx.macro("celu", alpha=2.0).options() == {"alpha": 2.0}

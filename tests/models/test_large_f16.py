"""Activations of f16 up to 6e4: finite wherever the result is, by f64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx.parser
import pytest

import mgx_mlir as migraphx
from tests.support.draws import seeds

LARGEST = 65504.0
HALF = "Constant<value_float=0.125>"
ATTENTION = f"""
  t{{i}} = Transpose<perm=[0,1,3,2]>(k)
  s{{i}} = MatMul(q{{i}}, t{{i}})
  c{{i}} = {HALF}()
  h{{i}} = Cast<to=10>(c{{i}})
  m{{i}} = Mul(s{{i}}, h{{i}})
  p{{i}} = Softmax(m{{i}})
  by_hand_{{i}} = MatMul(p{{i}}, v)
  attention_{{i}} = Attention(q{{i}}, k, v)
"""
BODY = """
  softmax = Softmax(x)
  logsoftmax = LogSoftmax(x)
  gelu = Gelu(x)
  gelu_tanh = Gelu<approximate="tanh">(x)
  a = Constant<value_ints=[1]>()
  mean = ReduceMean(n, a)
  pooled = GlobalAveragePool(g)
  layer = LayerNormalization(x, one, one)
  rms = RMSNormalization(x, one)
  c = ReduceMean(x, a)
  d = Sub(x, c)
  dd = Mul(d, d)
  variance = ReduceMean(dd, a)
  deviation = Sqrt(variance)
  norm = Div(d, deviation)
"""
QUERIES = (1, 5, 16)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _wanted(f: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the results in f64."""
    w = {k: v.astype(np.float64) for k, v in f.items()}
    x = w["x"]
    centred = x - x.mean(1, keepdims=True)
    erf = np.vectorize(math.erf)
    out = {
        "softmax": _softmax(x),
        "logsoftmax": x - x.max(-1, keepdims=True) - np.log(
            np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
        ),
        "gelu": 0.5 * x * (1 + erf(x / 2**0.5)),
        "gelu_tanh": 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
        "mean": w["n"].mean(1, keepdims=True),
        "pooled": w["g"].mean((2, 3), keepdims=True),
        "layer": centred / x.std(1, keepdims=True) + 1,
        "rms": x / np.sqrt((x**2).mean(1, keepdims=True)),
        "norm": centred / x.std(1, keepdims=True),
    }  # fmt: skip
    for i in QUERIES:
        scores = w[f"q{i}"] @ w["k"].transpose(0, 1, 3, 2) / 8
        out[f"by_hand_{i}"] = out[f"attention_{i}"] = _softmax(scores) @ w["v"]
    return out


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_large_activations(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def drawn(most: float, *dims: int) -> np.ndarray:
        return rng.uniform(-most, most, dims).astype(np.float16)

    feeds: dict[str, Any] = {
        "x": drawn(6e4, 8, 512),
        "n": np.abs(drawn(6e4, 4, 300)),
        "g": np.abs(drawn(6e4, 1, 3, 40, 7)),
        "one": np.ones(512, np.float16),
        # products of the operands are up to 6e7
        **{f"q{i}": drawn(1000, 1, 2, i, 64) for i in QUERIES},
        "k": drawn(1000, 1, 2, 24, 64),
        "v": drawn(6e4, 1, 2, 24, 64),
    }
    want = _wanted(feeds)

    def types(values: dict[str, np.ndarray]) -> str:
        shown = ((n, ",".join(map(str, a.shape))) for n, a in values.items())
        return ", ".join(f"float16[{dims}] {n}" for n, dims in shown)

    body = BODY + "".join(ATTENTION.format(i=i) for i in QUERIES)
    head = '<ir_version: 10, opset_import: ["" : 23]>'
    model = onnx.parser.parse_model(f"{head} g ({types(feeds)}) => ({types(want)}) {{{body}}}")
    program = migraphx.parse_onnx_buffer(model.SerializeToString())
    program.compile(migraphx.get_target("cpu"))
    for (name, wanted), result in zip(want.items(), program.run(feeds), strict=True):
        got = np.asarray(result).astype(np.float64)
        fits = np.abs(wanted) < LARGEST
        assert np.isfinite(got[fits]).all(), name
        np.testing.assert_allclose(
            got[fits], wanted[fits], rtol=0, atol=2e-3 * np.abs(wanted).max(), err_msg=name
        )

"""Random generators: their distributions, and that a seed decides the numbers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as T
from onnx import helper

import mgx_mlir
from tests.support.models import model_of

N = 1 << 17  # more than are drawn when the model is read


def run(nodes, outputs, feeds):
    results = {n: (kind, None) for n, kind in outputs}
    model = model_of(nodes, {n: list(a.shape) for n, a in feeds.items()}, results, opset=22)
    return mgx_mlir.compile(model, "cpu").run(feeds)


def test_distributions():
    node = helper.make_node
    nodes = [
        node("RandomUniform", [], ["u"], shape=[N], low=-1.0, high=3.0),
        node("RandomUniform", [], ["v"], shape=[N], low=-1.0, high=3.0, seed=3.0),
        node("RandomUniform", [], ["w"], shape=[N], low=-1.0, high=3.0, seed=3.0),
        node("RandomNormal", [], ["z"], shape=[N], mean=2.0, scale=0.5),
        node("Bernoulli", ["p"], ["c"], seed=1.0),
        node("Multinomial", ["logits"], ["m"], sample_size=N),
        node("RandomNormal", [], ["small"], shape=[8], seed=5.0),
    ]
    outputs = [(n.output[0], T.INT32 if n.op_type == "Multinomial" else T.FLOAT) for n in nodes]
    weights = np.array([0.1, 0.2, 0.7], np.float32)
    feeds = {"p": np.full(N, 0.25, np.float32), "logits": np.log(weights)[None, :]}
    u, v, w, z, c, m, small = run(nodes, outputs, feeds)
    assert u.min() >= -1
    assert u.max() < 3
    assert abs(u.mean() - 1) < 0.02
    assert np.abs(np.histogram(u, 16, (-1, 3))[0] * 16 / N - 1).max() < 0.06
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(u, v)[0, 1]) < 0.02
    np.testing.assert_array_equal(v, w)
    assert abs(z.mean() - 2) < 0.01
    assert abs(z.std() - 0.5) < 0.01
    assert abs(np.mean(np.abs(z - 2) < 0.5) - 0.6827) < 0.01
    assert set(np.unique(c)) == {0.0, 1.0}
    assert abs(c.mean() - 0.25) < 0.01
    np.testing.assert_allclose(np.bincount(m[0], minlength=3) / N, weights, atol=0.01)
    wanted = np.random.RandomState(5).normal(size=8)
    np.testing.assert_allclose(small, wanted, rtol=1e-6)  # values of ONNX's reference


def test_draws_of_the_dims_of_another_tensor():
    """RandomUniformLike and RandomNormalLike: its dims, and its type unless `dtype` is given."""
    node = helper.make_node
    nodes = [
        node("RandomUniformLike", ["x"], ["u"], low=-1.0, high=3.0),
        node("RandomNormalLike", ["x"], ["z"], mean=2.0, scale=0.5, dtype=T.DOUBLE),
        node("RandomNormalLike", ["x"], ["same"], seed=5.0),
        node("RandomNormalLike", ["x"], ["again"], seed=5.0),
    ]
    outputs = [("u", T.FLOAT), ("z", T.DOUBLE), ("same", T.FLOAT), ("again", T.FLOAT)]
    u, z, same, again = run(nodes, outputs, {"x": np.zeros((2, N), np.float32)})
    assert [a.shape for a in (u, z, same)] == [(2, N)] * 3
    assert [a.dtype for a in (u, z, same)] == [np.float32, np.float64, np.float32]
    assert u.min() >= -1
    assert u.max() < 3
    assert abs(u.mean() - 1) < 0.02
    assert abs(z.mean() - 2) < 0.01
    assert abs(z.std() - 0.5) < 0.01
    np.testing.assert_array_equal(same, again)

"""Operands of products that are computed outside of regions."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from tests.support.oracle import ort_session

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
# 9 rows of each batch: no whole number of the 8 and 16 rows that are packed together
CASES = {
    "left": "(float[2,9,9] x, float[2,9,16] v) => (float[2,9,16] y) "
    "{ s = Softmax <axis = -1> (x) y = MatMul(s, v) }",
    "right": "(float[2,9,9] x, float[2,16,9] v) => (float[2,16,9] y) "
    "{ s = Softmax <axis = -1> (x) y = MatMul(v, s) }",
    "right, turned": "(float[2,9,9] x, float[2,16,9] v) => (float[2,16,9] y) "
    "{ s = Softmax <axis = -1> (x) t = Transpose <perm = [0, 2, 1]> (s) y = MatMul(v, t) }",
    "one matrix": "(float[2,9,9] x, float[9,16] v) => (float[2,9,16] y) "
    "{ s = Softmax <axis = -1> (x) y = MatMul(s, v) }",
    "four axes": "(float[2,3,9,9] x, float[2,3,9,16] v) => (float[2,3,9,16] y) "
    "{ s = Softmax <axis = -1> (x) y = MatMul(s, v) }",
    "convolution": "(float[2,9,3,3] x, float[16,9,1,1] v) => (float[2,16,3,3] y) "
    "{ s = Softmax <axis = 1> (x) y = Conv(s, v) }",
}


GATHERED = (
    "(float[16] x, int64[1] at, float[1,33] v) => (float[33] y) "
    "{ s = GatherElements <axis = 0> (x, at) y = MatMul(s, v) }"
)


def check(text: str, boundaries: bool) -> None:
    """Compare with onnxruntime."""
    data = onnx.parser.parse_model(HEAD + text).SerializeToString()
    session = ort_session(data)
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.normal(size=i.shape).astype(np.float32) for i in session.get_inputs()}
    if "at" in feeds:
        feeds["at"] = np.array([5])
    program = mgx_mlir.compile(data, "cpu", threads=1, kernel_boundaries=boundaries)
    (got,), (want,) = program.run(feeds), session.run(None, feeds)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_without_kernel_boundaries(name: str) -> None:
    check(CASES[name], False)


@pytest.mark.parametrize("boundaries", [True, False])
def test_elements_at_computed_places(boundaries: bool) -> None:
    check(GATHERED, boundaries)

"""Operands of products that are computed with reductions, in kernels of the compiler's choice."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import mgx_mlir

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


@pytest.mark.parametrize("name", CASES)
def test_without_kernel_boundaries(name: str) -> None:
    data = onnx.parser.parse_model(HEAD + CASES[name]).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.normal(size=i.shape).astype(np.float32) for i in session.get_inputs()}
    program = mgx_mlir.compile(data, "cpu", threads=1, kernel_boundaries=False)
    (got,), (want,) = program.run(feeds), session.run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

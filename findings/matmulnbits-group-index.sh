#!/usr/bin/env bash
# MatMulNBits holds each block's zero point in zero_points. With the optional g_idx, the block of
# each row of weights, onnxruntime's CPU kernel takes 8 in place of every packed zero point, also
# where g_idx says what holds without it. Quantised models with act-order (GPTQ) have both inputs,
# so onnxruntime is no oracle of theirs.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 \
  onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__)
rng = np.random.default_rng(0)
columns, rows, block = 4, 32, 16
codes = rng.integers(0, 16, (columns, rows)).astype(np.uint8)
zeros = rng.integers(0, 16, (columns, rows // block)).astype(np.uint8)
scales = rng.random((columns, rows // block)).astype(np.float32)
groups = (np.arange(rows) // block).astype(np.int32)  # what holds without g_idx
x = rng.standard_normal((1, rows)).astype(np.float32)
held = {
    "w": (codes[:, ::2] | codes[:, 1::2] << 4).reshape(columns, -1, block // 2),
    "s": scales.reshape(-1),
    "z": (zeros[:, ::2] | zeros[:, 1::2] << 4).reshape(-1),
    "g": groups,
}


def run(inputs: list[str]) -> np.ndarray:
    node = helper.make_node(
        "MatMulNBits", inputs, ["y"], domain="com.microsoft", K=rows, N=columns, bits=4,
        block_size=block,
    )
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, columns])],
        [numpy_helper.from_array(held[n], n) for n in inputs[1:]],
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def product(zero: np.ndarray) -> np.ndarray:
    return x @ ((codes - zero.astype(np.float32)) * scales[:, groups]).T


without, with_groups = run(["x", "w", "s", "z"]), run(["x", "w", "s", "z", "g"])
print("numpy             ", product(zeros[:, groups]))
print("without g_idx     ", without)
print("with g_idx        ", with_groups)
print("numpy, zeros all 8", product(np.full((columns, rows), 8)))
assert np.allclose(without, product(zeros[:, groups]), atol=1e-3)
if not np.allclose(with_groups, product(np.full((columns, rows), 8)), atol=1e-3):
    sys.exit("g_idx keeps the zero points now")
PY

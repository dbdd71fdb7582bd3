#!/usr/bin/env bash
# 8-bit integers of ONNX wrap. OpenVINO's `Add`, `Sub`, `Mul` and `BitShift` of them saturate: 250
# + 10 is 255 and not 4, 3 - 10 is 0 and not 249, 200 << 1 is 255 and not 144. 16 and 32 bits
# wrap.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnxruntime
import openvino
from onnx import helper, numpy_helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)


def run(node, kind, *arrays, opset=21, dims=None):
    """Return the first result of a node in onnxruntime and in OpenVINO, in f32."""
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(node.input, arrays, strict=True)
    ]
    dims = [f"d{i}" for i in range(arrays[0].ndim)] if dims is None else dims
    result = helper.make_tensor_value_info(
        node.output[0], helper.np_dtype_to_tensor_dtype(np.dtype(kind)), dims
    )
    graph = helper.make_graph([node], "g", inputs, [result])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    model = made.SerializeToString()
    feeds = dict(zip(node.input, arrays, strict=True))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    core = openvino.Core()
    other = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return session.run(None, feeds)[0], other(feeds)[0]


wrong = []
for kind, dtype, a, b, how in (
    ("Add", np.uint8, 250, 10, {}),
    ("Sub", np.uint8, 3, 10, {}),
    ("Mul", np.int8, 100, 3, {}),
    ("BitShift", np.uint8, 200, 1, {"direction": "LEFT"}),
    ("Add", np.int16, 32767, 1, {}),
    ("Add", np.int32, 2**31 - 1, 1, {}),
):
    node = helper.make_node(kind, ["a", "b"], ["y"], **how)
    ort, ov = run(node, dtype, np.array([a], dtype), np.array([b], dtype))
    print(kind, np.dtype(dtype), a, b, "onnxruntime", ort, "OpenVINO", ov)
    wrong.append(bool(ort[0] != ov[0]))
if wrong != [True, True, True, True, False, False]:
    sys.exit("other types saturate now")
PY

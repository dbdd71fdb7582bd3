#!/usr/bin/env bash
# OpenVINO's CPU plugin computes int64 in 32 bits, and says nothing: `Identity` of 2**40 + 3 is 3,
# a `ReduceSum` of 2**31 and 1 is -2**31. The result still has the type int64.
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


big = np.array([2**40 + 3])
same = run(helper.make_node("Identity", ["x"], ["y"]), np.int64, big)
print("Identity of 2**40 + 3: onnxruntime", same[0], "OpenVINO", same[1], same[1].dtype)
total = run(
    helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0), np.int64, np.array([2**31, 1]), dims=[]
)
print("sum of 2**31 and 1: onnxruntime", total[0], "OpenVINO", total[1])
if same[1].dtype != np.int64 or same[1][0] == big[0] or total[1] == 2**31 + 1:
    sys.exit("OpenVINO keeps 64 bits now")
PY

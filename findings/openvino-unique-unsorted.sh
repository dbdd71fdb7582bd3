#!/usr/bin/env bash
# OpenVINO's `Unique` with sorted=0 loses elements: of 2, 1, 1, 3, 2 it gives 2, 0, 0 in place of
# 2, 1, 3. With sorted=1 it is right.
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


x = np.array([2, 1, 1, 3, 2], np.float32)
found = {}
for ordered in (0, 1):
    values = run(helper.make_node("Unique", ["x"], ["y"], sorted=ordered), np.float32, x)
    found[ordered] = [v.tolist() for v in values]
    print(f"sorted={ordered}: onnxruntime", found[ordered][0], "OpenVINO", found[ordered][1])
if found[0][0] == found[0][1] or found[1][0] != found[1][1]:
    sys.exit("both are right now, or both wrong")
PY

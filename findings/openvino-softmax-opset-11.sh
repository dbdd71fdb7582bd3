#!/usr/bin/env bash
# ONNX `Softmax` of opset 11 flattens its input to two axes at `axis`, 1 by default, and takes the
# softmax of whole rows. OpenVINO takes it along `axis` alone, as opset 13 does: for an input of
# more axes all numbers differ. Opset 7, and `LogSoftmax` of opset 11, are right.
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


x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
errors = {}
for kind, opset in (("Softmax", 7), ("Softmax", 11), ("LogSoftmax", 11)):
    ort, ov = run(helper.make_node(kind, ["x"], ["y"]), np.float32, x, opset=opset)
    errors[kind, opset] = float(np.abs(ort - ov).max())
    print(kind, "of opset", opset, "differs by", errors[kind, opset])
    if opset == 11 and kind == "Softmax":
        print(ort, ov, sep="\n")
if [e > 0.01 for e in errors.values()] != [False, True, False]:
    sys.exit("Softmax of opset 11 is right now, or another is wrong")
PY

#!/usr/bin/env bash
# The third input of ONNX's Pad is the number that fills. OpenVINO reads it where it is a constant; where it is an input
# of the model, or computed, it fills with 0, without a word. A mask that is padded with minus infinity from outside is
# padded with 0, which means "seen".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
core = openvino.Core()
x, seven = np.array([1, 2], np.float32), np.array(7, np.float32)


def run(how):
    """Return x padded by one 7 on either side, in onnxruntime and in OpenVINO."""
    nodes, given = [helper.make_node("Pad", ["x", "pads", "value"], ["y"])], {"x": x}
    constants = {"pads": np.array([1, 1])}
    if how == "a constant":
        constants["value"] = seven
    elif how == "an input":
        given["value"] = seven
    else:
        given["top"] = x + 5
        nodes.insert(0, helper.make_node("ReduceMax", ["top"], ["value"], keepdims=0))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    compiled = core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return session.run(None, given)[0].tolist(), compiled(given)[0].tolist()


for how, expected in (("a constant", [7, 1, 2, 7]), ("an input", [0, 1, 2, 0]), ("computed", [0, 1, 2, 0])):
    found = run(how)
    print(f"7 is {how:11} onnxruntime {found[0]} OpenVINO {found[1]}")
    if found != ([7, 1, 2, 7], expected):
        sys.exit("the number is read otherwise now")
PY

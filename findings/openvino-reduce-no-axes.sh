#!/usr/bin/env bash
# Reductions of ONNX with noop_with_empty_axes=1 and no axes reduce nothing, "but composite-reduction operators will
# still perform the non-reduction steps": ReduceLogSum is the logarithm of each element, ReduceL1 its magnitude.
# OpenVINO gives the input back for these. ReduceSumSquare squares there too.
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
from onnx import TensorProto, helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
print(onnx.defs.get_schema("ReduceL1", 18).attributes["noop_with_empty_axes"].description.split(". ")[3])
core = openvino.Core()
x = np.array([-2, 1, 4], np.float32)
changed = []
for op, expected, other in (
    ("ReduceL1", np.abs(x), x),
    ("ReduceL2", np.abs(x), x),
    ("ReduceLogSum", np.log(np.abs(x)), np.abs(x)),
    ("ReduceSumSquare", x * x, x * x),
    ("ReduceSum", x, x),
):
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], noop_with_empty_axes=1)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    data, given = model.SerializeToString(), np.abs(x) if op == "ReduceLogSum" else x
    right = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": given})[0]
    found = core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    print(f"{op:15} of {given}: onnxruntime {right.round(4)} OpenVINO {found.round(4)}")
    if not np.allclose(right, expected, atol=1e-5) or not np.allclose(found, other, atol=1e-5):
        changed.append(op)
if changed:
    sys.exit(f"computed otherwise now: {changed}")
PY

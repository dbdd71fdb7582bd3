#!/usr/bin/env bash
# Sigmoid far left: sigmoid(-20) is 2.06e-9, and its logarithm -20. onnxruntime gives 0 from about -19 on, so that the
# logarithm is minus infinity; tract never goes below 4.5e-7, where the logarithm is -14.6 for -50 too. Both are
# rational approximations with a small absolute error; f32 has numbers down to sigmoid(-87). OpenVINO has all digits. A
# loss or a product of many gates that is right in one engine is infinite or wrong in another.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import openvino
import tract
from onnx import TensorProto, helper

print(*(f"{p} {version(p)}" for p in ("onnxruntime", "openvino", "tract")))
x = np.array([-5, -10, -15, -20, -50, -80], np.float32)
graph = helper.make_graph(
    [helper.make_node("Sigmoid", ["x"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(model)
data = model.SerializeToString()
core = openvino.Core()
found = {
    "onnxruntime": onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0],
    "OpenVINO": core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0],
}
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    read = tract.onnx().load(file.name)
    read.set_input_fact(0, "6,f32")
    found["tract"] = read.into_model().into_runnable().run([x])[0].to_numpy()
right = 1 / (1 + np.exp(-x.astype(np.float64)))
with np.errstate(divide="ignore"):
    for name, y in {"numbers": x, "sigmoid": right, **found}.items():
        print(f"{name:12}", *(f"{v:10.4g}" for v in y), "" if name == "numbers" else f"  log {np.log(y)[3:].round(2)}")
if not np.allclose(found["OpenVINO"], right, rtol=1e-4, atol=0):
    sys.exit("OpenVINO's is another now")
if found["onnxruntime"][3:].any() or not np.allclose(found["onnxruntime"][:2], right[:2], rtol=1e-3):
    sys.exit("onnxruntime's is another now")
if (found["tract"][3:] < 4e-7).any() or (found["tract"][3:] > 5e-7).any():
    sys.exit("tract's is another now")
PY

#!/usr/bin/env bash
# erf(x) near 0 is 1.128 x, as small as x may be. OpenVINO, tract and tinygrad take 1 minus a small number there, which
# is right to 1e-7 of 1: erf(1e-6) of tract is 1.9e-6 in place of 1.13e-6, and erf(1e-7) is 0 in all three. GELU adds 1
# and does not tell; a ratio, or a model of distributions that uses erf itself, does. onnxruntime has seven digits.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 tract==0.23.9 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - <<'PY'
import math
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import openvino
import tract
from onnx import TensorProto, helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnxruntime", "openvino", "tract", "tinygrad")))
x = np.array([0.5, 1e-4, 1e-6, 1e-7], np.float32)
graph = helper.make_graph(
    [helper.make_node("Erf", ["x"], ["y"])], "g",
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
    read.set_input_fact(0, "4,f32")
    found["tract"] = read.into_model().into_runnable().run([x])[0].to_numpy()
    found["tinygrad"] = OnnxRunner(file.name)({"x": Tensor(x)})["y"].numpy()
right = np.array([math.erf(v) for v in x])
print("numbers     ", x, "\nerf         ", right)
for name, y in found.items():
    off = np.abs(y / right - 1)
    print(f"{name:12}", y, " relative error", *(f"{v:.1e}" for v in off))
    if off[0] > 1e-5:
        sys.exit("erf(0.5) is another now")
    if (off.max() < 1e-5) != (name == "onnxruntime") or (name != "onnxruntime" and y[3] != 0):
        sys.exit("small numbers are treated otherwise now")
PY

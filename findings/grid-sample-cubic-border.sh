#!/usr/bin/env bash
# GridSample of ONNX is PyTorch's grid_sample, to which its text points. Cubic with padding_mode=border takes the
# border's element for each of 16 neighbours that lies outside: PyTorch, onnxruntime and OpenVINO. onnx.reference and
# tract first move the point itself to the border. Beyond the border PyTorch's numbers still change, theirs do not.
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
from onnx.reference import ReferenceEvaluator

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "openvino", "tract")))
given = {"x": np.array([1, 2, 4, 8], np.float32).reshape(1, 1, 1, 4)}
given["grid"] = np.zeros((1, 1, 4, 2), np.float32)
given["grid"][..., 0] = -0.5, 1, 1.2, 1.5
graph = helper.make_graph(
    [helper.make_node("GridSample", ["x", "grid"], ["y"], mode="cubic", padding_mode="border", align_corners=1)], "g",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 4])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
onnx.checker.check_model(model)
data = model.SerializeToString()
core = openvino.Core()
found = {
    "onnxruntime": onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, given)[0],
    "OpenVINO": core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0],
    "onnx.reference": ReferenceEvaluator(model).run(None, given)[0],
}
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    read = tract.onnx().load(file.name)
    read.set_input_fact(0, "1,1,1,4,f32")
    read.set_input_fact(1, "1,1,4,2,f32")
    found["tract"] = read.into_model().into_runnable().run(list(given.values()))[0].to_numpy()


# PyTorch's formula: coefficients of Keys with a = -0.75 at the point as it is, indices moved to the border one by one
def weights(t):
    return [
        ((-0.75 * (t + 1) + 3.75) * (t + 1) - 6) * (t + 1) + 3,
        (1.25 * t - 2.25) * t * t + 1,
        (1.25 * (1 - t) - 2.25) * (1 - t) ** 2 + 1,
        ((-0.75 * (2 - t) + 3.75) * (2 - t) - 6) * (2 - t) + 3,
    ]


places = (given["grid"][0, 0, :, 0].astype(np.float64) + 1) / 2 * 3
row = given["x"].ravel()
formula = [
    sum(w * row[int(np.clip(np.floor(p) + i - 1, 0, 3))] for i, w in enumerate(weights(p - np.floor(p))))
    for p in places
]
print("places in a row of 1 2 4 8:", places.round(3), " PyTorch's formula:", np.round(formula, 4))
for name, y in found.items():
    print(f"{name:15}", y.ravel().round(4))
    expected = formula if name in ("onnxruntime", "OpenVINO") else [*formula[:2], 8, 8]
    if not np.allclose(y.ravel(), expected, atol=1e-3):
        sys.exit("the border is treated otherwise now")
PY

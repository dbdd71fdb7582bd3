#!/usr/bin/env bash
# NonMaxSuppression of ONNX: "Bounding boxes with score less than score_threshold are removed", so that a box at the
# threshold stays. onnxruntime, OpenVINO, tract and onnx.reference all remove it. Scores of 8-bit models lie on a grid,
# and thresholds as 0.5 on it. Four implementations agree, and the text is alone.
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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "openvino", "tract")))
print(onnx.defs.get_schema("NonMaxSuppression", 11).doc.strip().split("\n")[1].split(". ")[0])
given = {
    "boxes": np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [5, 5, 6, 6]]], np.float32),
    "scores": np.array([[[0.75, 0.5, 0.25]]], np.float32),
}
constants = {"most": np.array([9], np.int64), "iou": np.array([0.5], np.float32), "least": np.array([0.5], np.float32)}
graph = helper.make_graph(
    [helper.make_node("NonMaxSuppression", [*given, *constants], ["y"])], "g",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
    [helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 3])],
    [numpy_helper.from_array(a, n) for n, a in constants.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
onnx.checker.check_model(model)
data = model.SerializeToString()
core = openvino.Core()
found = {
    "onnxruntime": onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, given)[0],
    "onnx.reference": ReferenceEvaluator(model).run(None, given)[0],
    "OpenVINO": core.compile_model(core.read_model(data), "CPU")(given)[0],
}
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    read = tract.onnx().load(file.name)
    read.set_input_fact(0, "1,3,4,f32")
    read.set_input_fact(1, "1,1,3,f32")
    found["tract"] = read.into_model().into_runnable().run(list(given.values()))[0].to_numpy()
print("scores", given["scores"].ravel(), "threshold 0.5: boxes by the text [0, 1]")
for name, y in found.items():
    print(f"{name:15}", y[:, 2].tolist())
    if y[:, 2].tolist() != [0]:
        sys.exit("a box at the threshold stays now")
PY

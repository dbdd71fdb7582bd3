#!/usr/bin/env bash
# Attention of opset 25 has left_window_size and right_window_size: a query sees so many keys before and
# behind it. OpenVINO and tract read the node, leave both out without a word, and attend to every key.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 openvino==2026.4.1 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import openvino
import tract
from onnx import TensorProto, helper

print(*(f"{p} {version(p)}" for p in ("onnx", "openvino", "tract")))
q = k = np.zeros((1, 1, 5, 1), np.float32)
v = np.arange(5, dtype=np.float32).reshape(1, 1, 5, 1)
graph = helper.make_graph(
    [helper.make_node("Attention", ["q", "k", "v"], ["y"], left_window_size=1, right_window_size=0)], "g",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, q.shape) for n in "qkv"],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, q.shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
onnx.checker.check_model(model)
print(onnx.defs.get_schema("Attention", 25).attributes["left_window_size"].description.split(". ")[0])
core = openvino.Core()
compiled = core.compile_model(
    core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
)
found = {"OpenVINO": compiled({"q": q, "k": k, "v": v})[0].ravel()}
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    read = tract.onnx().load(file.name)
    for i in range(3):
        read.set_input_fact(i, "1,1,5,1,f32")
    [y] = read.into_model().into_runnable().run([q, k, v])
    found["tract"] = y.to_numpy().ravel()
# scores are equal, so a result is the mean of the values that its query sees: its own and the one before
expected = np.array([0, 0.5, 1.5, 2.5, 3.5])
print("by the text", expected)
for name, y in found.items():
    print(f"{name:11}", y)
    if not np.allclose(y, 2):
        sys.exit("the window is followed now")
PY

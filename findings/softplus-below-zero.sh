#!/usr/bin/env bash
# Softplus, log(1 + exp(x)), is positive for every x; it makes variances and rates of any number. OpenVINO's is -1.9e-6
# at -16.5 to -21, and 0 at -15: a logarithm or root behind it is NaN. tract's is 0 there, and infinite from 89 on,
# where x itself is the answer; so its Mish is off at 20 already. onnxruntime has all digits on both sides.
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
x = np.array([-5, -15, -18, -20, 0, 20, 89, 100], np.float32)
core = openvino.Core()


def run(op):
    """Return op(x) of each engine."""
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    found = {
        "onnxruntime": onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0],
        "OpenVINO": core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0],
    }
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        read = tract.onnx().load(file.name)
        read.set_input_fact(0, "8,f32")
        found["tract"] = read.into_model().into_runnable().run([x])[0].to_numpy()
    return found


right = np.logaddexp(0, x.astype(np.float64))
softplus, mish = run("Softplus"), run("Mish")
for title, results in (("x", {"": x}), ("Softplus", {"by f64": right, **softplus}), ("Mish", mish)):
    for name, y in results.items():
        print(f"{title:9}{name:12}", *(f"{v:10.4g}" for v in y))
if not np.allclose(softplus["onnxruntime"], right, rtol=1e-5, atol=0):
    sys.exit("onnxruntime's is another now")
if not (softplus["OpenVINO"][2:4] < 0).all() or softplus["OpenVINO"][1] != 0:
    sys.exit("OpenVINO's is positive now")
if softplus["tract"][1:4].max() > 4e-7 or not np.isinf(softplus["tract"][6:]).all():
    sys.exit("tract's is another now")
if abs(mish["tract"][5] - 20) < 5e-6:
    sys.exit("tract's Mish is another now")
PY

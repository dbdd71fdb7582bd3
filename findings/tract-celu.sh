#!/usr/bin/env bash
# tract's Celu lacks its factor: alpha * (exp(x / alpha) - 1), the text's formula, is exp(x / alpha) - 1 there.
# It is right for the default, alpha = 1. Elu has its factor.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import TensorProto, helper

print("tract", version("tract"), "onnxruntime", onnxruntime.__version__)
x = np.array([-3, -0.5, 1], np.float32)


def run(alpha):
    """Return Celu(x) in onnxruntime and in tract."""
    graph = helper.make_graph(
        [helper.make_node("Celu", ["x"], ["y"], alpha=alpha)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        read = tract.onnx().load(file.name)
        read.set_input_fact(0, "3,f32")
        [y] = read.into_model().into_runnable().run([x])
    return session.run(None, {"x": x})[0], y.to_numpy()


for alpha in (1.0, 2.0, 0.5):
    exponential = np.exp(x.astype(np.float64) / alpha) - 1
    expected = np.maximum(x, 0) + np.minimum(0, alpha * exponential)
    found = run(alpha)
    print(f"alpha {alpha}: by the text {expected.round(5)}, onnxruntime {found[0]}, tract {found[1]}")
    lacking = np.where(x > 0, x, exponential)
    if not np.allclose(found[0], expected, atol=1e-5) or not np.allclose(found[1], lacking, atol=1e-5):
        sys.exit("the factor is there now")
PY

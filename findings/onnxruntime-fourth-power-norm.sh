#!/usr/bin/env bash
# onnxruntime, with the optimisations that are on by default, takes (x - mean) / sqrt(mean((x - mean) ** 4)
# + epsilon) for a LayerNormalization: it looks for a Pow there, and not at its exponent, 4.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__)
onnxruntime.set_default_logger_severity(4)
node = helper.make_node
nodes = [
    node("ReduceMean", ["x", "last"], ["mean"]),
    node("Sub", ["x", "mean"], ["d"]),
    node("Pow", ["d", "four"], ["p"]),
    node("ReduceMean", ["p", "last"], ["m"]),
    node("Add", ["m", "epsilon"], ["e"]),
    node("Sqrt", ["e"], ["s"]),
    node("Div", ["d", "s"], ["n"]),
    node("Mul", ["n", "scale"], ["k"]),
    node("Add", ["k", "bias"], ["y"]),
]
constants = {
    "last": np.array([-1]),
    "four": np.array(4, np.float32),
    "epsilon": np.array(1e-5, np.float32),
    "scale": np.ones(4, np.float32),
    "bias": np.zeros(4, np.float32),
}
graph = helper.make_graph(
    nodes, "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    [numpy_helper.from_array(value, name) for name, value in constants.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
x = np.array([[0, 1, 2, 9]], np.float32)


def run(level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def norm(power):
    d = x.astype(np.float64) - x.mean(dtype=np.float64)
    return d / np.sqrt((d**power).mean() + 1e-5)


levels = onnxruntime.GraphOptimizationLevel
plain, default = run(levels.ORT_DISABLE_ALL), run(levels.ORT_ENABLE_ALL)
print("in f64, power 4       ", norm(4).round(4))
print("in f64, power 2       ", norm(2).round(4))
print("without optimisations ", plain.round(4))
print("by default            ", default.round(4))
if not np.allclose(plain, norm(4), atol=1e-4) or not np.allclose(default, norm(2), atol=1e-4):
    sys.exit("the exponent is looked at now")
PY

#!/usr/bin/env bash
# onnxruntime, with the optimisations that are on by default, merges two quantizations in a row, of scales
# 0.1 and 0.3, into one of a third scale: no result is a multiple of 0.3 any more.
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
nodes = [
    helper.make_node("QuantizeLinear", ["x", "s1", "z1"], ["a"]),
    helper.make_node("DequantizeLinear", ["a", "s1", "z1"], ["b"]),
    helper.make_node("QuantizeLinear", ["b", "s2", "z2"], ["c"]),
    helper.make_node("DequantizeLinear", ["c", "s2", "z2"], ["y"]),
]
constants = {
    "s1": np.array(0.1, np.float32), "z1": np.array(128, np.uint8),
    "s2": np.array(0.3, np.float32), "z2": np.array(10, np.uint8),
}
graph = helper.make_graph(
    nodes, "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    [numpy_helper.from_array(value, name) for name, value in constants.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
x = np.array([-5, -0.4, 3.3, 20.6], np.float32)


def run(level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def quantize(v, scale, zero):
    return (np.clip(np.round(v / scale) + zero, 0, 255) - zero) * scale


levels = onnxruntime.GraphOptimizationLevel
plain, default = run(levels.ORT_DISABLE_ALL), run(levels.ORT_ENABLE_ALL)
expected = quantize(quantize(x.astype(np.float64), 0.1, 128), 0.3, 10)
print("x                     ", x)
print("in f64                ", expected.round(4))
print("without optimisations ", plain.round(4))
print("by default            ", default.round(4))
print("by default / 0.3      ", (default / 0.3).round(3))
if not np.allclose(plain, expected, atol=1e-5) or np.allclose(default, expected, atol=1e-2):
    sys.exit("both quantizations are kept now")
PY

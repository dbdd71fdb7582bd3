#!/usr/bin/env bash
# onnxruntime, with the optimisations that are on by default, makes z / x of (1 / x) * z for integers too.
# 1 / 2 is 0 in integers, so (1 / 2) * 8 is 0; it gives 4. Without optimisations it is right.
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
x, z = np.array([2, 3, 1], np.int64), np.array([8, 9, 5], np.int64)
graph = helper.make_graph(
    [helper.make_node("Div", ["one", "x"], ["r"]), helper.make_node("Mul", ["r", "z"], ["y"])],
    "g",
    [helper.make_tensor_value_info(n, TensorProto.INT64, [3]) for n in ("x", "z")],
    [helper.make_tensor_value_info("y", TensorProto.INT64, [3])],
    [numpy_helper.from_array(np.array([1], np.int64), "one")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)


def run(level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x, "z": z})[0]


levels = onnxruntime.GraphOptimizationLevel
plain, default = run(levels.ORT_DISABLE_ALL), run(levels.ORT_ENABLE_ALL)
print("x", x, "z", z)
print("(1 // x) * z          ", 1 // x * z)
print("without optimisations ", plain)
print("by default            ", default)
if not np.array_equal(plain, 1 // x * z) or np.array_equal(plain, default):
    sys.exit("integers are left alone now")
PY

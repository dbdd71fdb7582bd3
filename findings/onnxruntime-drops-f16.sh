#!/usr/bin/env bash
# onnxruntime on CPUs computes most operators of f16 in f32, and takes out the casts between them, those
# that the model states too, with all optimisations off: 70000 is cast to f16, which is infinite, 1 is
# added, and the result, as f32, is 70001. 2048 + 1 in f16 is 2048, and 2049 where a Cast to f32 follows.
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
x = np.array([70000, 2048, 0.1], np.float32)
nodes = [
    helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.FLOAT16),
    helper.make_node("Add", ["narrow", "one"], ["sum"]),
    helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT),
]
graph = helper.make_graph(
    nodes, "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    [numpy_helper.from_array(np.array([1], np.float16), "one")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(
    model.SerializeToString(), options, providers=["CPUExecutionProvider"]
)
found = session.run(None, {"x": x})[0]
with np.errstate(over="ignore"):
    expected = (x.astype(np.float16) + np.float16(1)).astype(np.float32)
print("x          ", x)
print("numpy      ", expected)
print("onnxruntime", found)
if not np.array_equal(found[:2], [70001, 2049]):
    sys.exit("sums of f16 are rounded to f16 now")
PY

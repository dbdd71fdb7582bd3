#!/usr/bin/env bash
# onnxslim folds a Mul behind a Conv into its weights when the constant has as many elements as the Conv has
# channels, whichever axis it is for: a constant of 2 elements scales the columns of 2 channels of 2x2, and
# scales the channels then.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxslim==0.1.98
"$work/venv/bin/python" - <<'PY'
import copy
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import onnxslim
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
print("onnxslim", version("onnxslim"), "onnxruntime", onnxruntime.__version__)
x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2)
constants = {
    "w": np.ones((2, 1, 1, 1), np.float32),
    "columns": np.array([10, 100], np.float32),
}
graph = helper.make_graph(
    [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Mul", ["c", "columns"], ["y"]),
    ],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2, 2])],
    [numpy_helper.from_array(value, name) for name, value in constants.items()],
)
old = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(old)
new = onnxslim.slim(copy.deepcopy(old))


def run(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


before, after = run(old), run(new)
print("before", [n.op_type for n in old.graph.node], before[0].tolist())
print("after ", [n.op_type for n in new.graph.node], after[0].tolist())
both = np.concatenate([x, x], axis=1)  # the result of the Conv
scaled = both * [10, 100], both * np.array([10, 100]).reshape(2, 1, 1)
if not np.array_equal(before, scaled[0]) or not np.array_equal(after, scaled[1]):
    sys.exit("the columns are scaled now")
PY

#!/usr/bin/env bash
# onnxoptimizer's default passes merge a `Pad` of zeros into the `MaxPool` behind it, whose own
# padding counts as minus infinity: with negative numbers the maxima at the border were 0, and are
# negative then.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxoptimizer==0.4.2
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import onnxoptimizer
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
print("onnx", version("onnx"), "onnxoptimizer", version("onnxoptimizer"))


def model(nodes, x, dims, opset, *constants):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(c, name) for name, c in constants],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def run(made, x):
    """Return the result of a model without onnxruntime's own rewrites."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


x = -np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2)
nodes = [
    helper.make_node("Pad", ["x", "p"], ["q"]),
    helper.make_node("MaxPool", ["q"], ["y"], kernel_shape=[2, 2]),
]
old = model(nodes, x, [1, 1, 3, 3], 17, ("p", np.array([0, 0, 1, 1, 0, 0, 1, 1])))
new = onnxoptimizer.optimize(old)
before, after = run(old, x), run(new, x)
print("before", [n.op_type for n in old.graph.node], before.ravel())
print("after ", [n.op_type for n in new.graph.node], after.ravel())
if np.array_equal(before, after):
    sys.exit("the numbers are kept now")
PY

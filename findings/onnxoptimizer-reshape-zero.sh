#!/usr/bin/env bash
# onnxoptimizer's default passes drop the first of two `Reshape` nodes, also where the second has
# a 0: it stands for the dim that the first one made. {2, 6} made {3, 4} and then {0, -1} is {3,
# 4}, and {2, 6} after the passes.
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


x = np.arange(12, dtype=np.float32).reshape(2, 6)
nodes = [
    helper.make_node("Reshape", ["x", "a"], ["q"]),
    helper.make_node("Reshape", ["q", "b"], ["y"]),
]
old = model(nodes, x, ["i", "j"], 17, ("a", np.array([3, 4])), ("b", np.array([0, -1])))
new = onnxoptimizer.optimize(old)
before, after = run(old, x).shape, run(new, x).shape
print("before", [n.op_type for n in old.graph.node], before)
print("after ", [n.op_type for n in new.graph.node], after)
if before == after:
    sys.exit("the dims are kept now")
PY

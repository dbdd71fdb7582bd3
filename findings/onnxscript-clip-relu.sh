#!/usr/bin/env bash
# onnxscript.optimizer, which torch.onnx.export runs by default, merges `Clip` and `Relu`. Numbers
# clipped to -3 to -1 are 0 behind the Relu. The merged `Clip` has a least of 0 and a most of -1,
# which makes all of them -1. So do two `Clip` nodes whose ranges do not meet.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import onnxscript.optimizer
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
print("onnx", version("onnx"), "onnxscript", version("onnxscript"))


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


x = np.array([-5, 1, 9], np.float32)
low, high = ("l", np.array(-3, np.float32)), ("h", np.array(-1, np.float32))
zero, five = ("z", np.array(0, np.float32)), ("f", np.array(5, np.float32))
clip = helper.make_node("Clip", ["x", "l", "h"], ["q"])
kept = []
for second in (
    helper.make_node("Relu", ["q"], ["y"]), helper.make_node("Clip", ["q", "z", "f"], ["y"])
):
    used = [low, high] + ([zero, five] if second.op_type == "Clip" else [])
    old = model([clip, second], x, [3], 17, *used)
    copy = onnx.ModelProto()
    copy.CopyFrom(old)
    new = onnxscript.optimizer.optimize(copy)
    before, after = run(old, x), run(new, x)
    print("before", [n.op_type for n in old.graph.node], before)
    print("after ", [n.op_type for n in new.graph.node], after)
    kept.append(np.array_equal(before, after))
if kept != [False, False]:
    sys.exit("the numbers are kept now")
PY

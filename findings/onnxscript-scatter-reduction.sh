#!/usr/bin/env bash
# onnxscript.optimizer, which torch.onnx.export runs by default, makes an Identity of the updates of a
# ScatterND whose indices are all rows in order. It does not look at `reduction`: x + u becomes u.
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

print("onnxscript", version("onnxscript"), "onnxruntime", onnxruntime.__version__)
x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
u = np.array([[10, 20], [30, 40], [50, 60]], np.float32)


def run(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x, "u": u})[0]


def model(reduction):
    graph = helper.make_graph(
        [helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3, 2]) for n in ("x", "u")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])],
        [numpy_helper.from_array(np.array([[0], [1], [2]]), "i")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(made)
    return made


for reduction, expected in {"add": x + u, "mul": x * u, "min": x}.items():
    old = model(reduction)
    before = run(old)
    new = onnxscript.optimizer.optimize(old)
    after = run(new)
    print(reduction, "before", before.ravel(), "after", [n.op_type for n in new.graph.node], after.ravel())
    if not np.array_equal(before, expected) or not np.array_equal(after, u):
        sys.exit("the reduction is looked at now")
PY

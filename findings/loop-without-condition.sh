#!/usr/bin/env bash
# ONNX `Loop` with a trip count and no condition is a for loop: the condition that its body gives "is
# ignored", says the text. Of 10 iterations whose body gives false from the third on, onnxruntime runs
# 3, and onnx.reference none. With the condition as an input both run 3, as the text says.
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
from onnx.reference import ReferenceEvaluator

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)


def run(node, kind, x, *constants, rank=None):
    made = [numpy_helper.from_array(c, n) for n, c in constants]
    dims = [f"d{i}" for i in range(x.ndim if rank is None else rank)]
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, dims)], made,
    )
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0], ReferenceEvaluator(model).run(None, {"x": x})[0]


def info(name, kind):
    return helper.make_tensor_value_info(name, kind, [])


body = helper.make_graph(
    [
        helper.make_node("Less", ["i", "two"], ["go"]),
        helper.make_node("Add", ["v", "one"], ["next"]),
    ],
    "body",
    [info("i", TensorProto.INT64), info("c", TensorProto.BOOL), info("v", TensorProto.FLOAT)],
    [info("go", TensorProto.BOOL), info("next", TensorProto.FLOAT)],
    [
        numpy_helper.from_array(np.array(2), "two"),
        numpy_helper.from_array(np.array(1, np.float32), "one"),
    ],
)
zero = np.array(0, np.float32)
ten, true = ("n", np.array(10)), ("c", np.array(True))
for_loop = run(
    helper.make_node("Loop", ["n", "", "x"], ["y"], body=body), TensorProto.FLOAT, zero, ten
)
both = run(
    helper.make_node("Loop", ["n", "c", "x"], ["y"], body=body), TensorProto.FLOAT, zero, ten, true
)
print("iterations, trip count alone: 10 by the text, onnxruntime", for_loop[0], end="")
print(", onnx.reference", for_loop[1])
print("iterations, trip count and condition: 3 by the text, onnxruntime", both[0], end="")
print(", onnx.reference", both[1])
if [float(v) for v in (*for_loop, *both)] != [3, 0, 3, 3]:
    sys.exit("the numbers of iterations are others now")
PY

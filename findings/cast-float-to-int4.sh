#!/usr/bin/env bash
# ONNX's Cast from float to an integer cuts towards zero. For int8 onnxruntime and onnx.reference
# both do. For int4 onnx.reference cuts, and onnxruntime rounds, halves away from zero.
# A compiler that is tested against one of them is wrong by the other.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
x = np.array([0.5, 1.5, 1.7, 2.5, -0.6, -1.7], np.float32)


def cast(to):
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=to),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [len(x)]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return ReferenceEvaluator(model).run(None, {"x": x})[0], session.run(None, {"x": x})[0]


print("x                    ", x)
for name in ("INT8", "INT4"):
    reference, found = cast(getattr(TensorProto, name))
    print(name, "onnx.reference  ", reference)
    print(name, "onnxruntime     ", found)
    if not np.array_equal(reference, np.trunc(x)):
        sys.exit(f"onnx.reference does not cut for {name} any more")
    rounds = name == "INT4"
    if np.array_equal(found, np.trunc(x)) == rounds:
        sys.exit(f"onnxruntime treats {name} otherwise now")
PY

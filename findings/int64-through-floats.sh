#!/usr/bin/env bash
# onnxruntime computes some integer operators in f64. From 2**53 on `ReduceSum`, `ReduceProd`, `Einsum`
# and `Pow` of int64 are rounded: x to the power of 1 is another number than x. `Add`, `Mul`, `MatMul`,
# `CumSum` and `ReduceMax` of the same numbers are exact. Sums of ids or of times in nanoseconds differ.
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


x = np.array([2**53 + 1, 2**53 + 3, 2**53 + 5])
one = ("one", np.array(1))
rows = [
    ("ReduceSum", helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0), x.sum(), ()),
    ("Einsum i->", helper.make_node("Einsum", ["x"], ["y"], equation="i->"), x.sum(), ()),
    ("Pow(x, 1)", helper.make_node("Pow", ["x", "one"], ["y"]), x, (one,)),
    ("Add(x, 1)", helper.make_node("Add", ["x", "one"], ["y"]), x + 1, (one,)),
    ("CumSum", helper.make_node("CumSum", ["x", "zero"], ["y"]), x.cumsum(),
     (("zero", np.array(0)),)),
]  # fmt: skip
right = {}
for name, node, wanted, constants in rows:
    ort, reference = run(node, TensorProto.INT64, x, *constants, rank=np.ndim(wanted))
    right[name] = np.array_equal(ort, wanted)
    print(f"{name:10}  onnxruntime - exact:", (ort - wanted).tolist(), end="")
    print("  onnx.reference - exact:", (reference - wanted).tolist())
if list(right.values()) != [False, False, False, True, True]:
    sys.exit("other operators are exact now")
PY

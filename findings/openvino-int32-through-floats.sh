#!/usr/bin/env bash
# OpenVINO's operators of int32 on x86-64 CPUs compute some results in f32, which has 24 bits: 16777217 equals 16777216,
# the largest of the two is 16777216, and sums, products of matrices and comparisons are rounded alike. uint32 is read
# as signed: 2147483648 < 1. Add, Mul, Max, CumSum and TopK of the same numbers are exact. Ids, hashes and times in
# seconds are such numbers: a model that looks for one finds its neighbours.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
core = openvino.Core()


def run(op, *arrays, kind=None):
    """Return the result of a node in onnxruntime and in OpenVINO."""
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    graph = helper.make_graph(
        [helper.make_node(op, [*given], ["y"])], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in given.items()],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(kind or arrays[0].dtype), None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    other = core.compile_model(core.read_model(model.SerializeToString()), "CPU")(given)[0]
    return session.run(None, given)[0].ravel().tolist(), other.ravel().tolist()


n = 2**24
low, high = (np.array([v], np.int32) for v in (n, n + 1))
both = np.concatenate([low, high])
unsigned = np.array([2**31], np.uint32), np.array([1], np.uint32)
found = {
    "Equal(16777217, 16777216)": (run("Equal", high, low, kind=np.dtype(bool)), [False], [True]),
    "Greater(16777217, 16777216)": (run("Greater", high, low, kind=np.dtype(bool)), [True], [False]),
    "Less(uint32 2147483648, 1)": (run("Less", *unsigned, kind=np.dtype(bool)), [False], [True]),
    "ReduceMax(16777216, 16777217)": (run("ReduceMax", both), [n + 1], [n]),
    "ReduceSum(16777216, 1)": (run("ReduceSum", np.array([n, 1], np.int32)), [n + 1], [n]),
    "4097 * 4097 + 1, MatMul": (
        run("MatMul", np.array([[4097, 1]], np.int32), np.array([[4097], [1]], np.int32)), [16785410], [16785408]
    ),
    "Add(16777216, 1)": (run("Add", low, np.array([1], np.int32)), [n + 1], [n + 1]),
}
changed = []
for name, (results, right, other) in found.items():
    print(f"{name:31} onnxruntime {results[0]} OpenVINO {results[1]}")
    if results != (right, other):
        changed.append(name)
if changed:
    sys.exit(f"computed otherwise now: {changed}")
PY

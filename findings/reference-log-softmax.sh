#!/usr/bin/env bash
# onnx.reference's `LogSoftmax` is the logarithm of its Softmax: where the probability underflows it is
# minus infinity. In f32 that is from -104 on, in f16 from -17 on. Its `ReduceLogSumExp` of minus
# infinities is NaN. onnxruntime has -104 and minus infinity.
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


node = helper.make_node("LogSoftmax", ["x"], ["y"])
x = np.array([0, -50, -104, -1000], np.float32)
ort, reference = run(node, TensorProto.FLOAT, x)
half = run(node, TensorProto.FLOAT16, np.array([0, -10, -17.5], np.float16))
print("f32, onnxruntime   ", ort)
print("f32, onnx.reference", reference)
print("f16, onnxruntime   ", half[0])
print("f16, onnx.reference", half[1])
least = np.full(3, -np.inf, np.float32)
node = helper.make_node("ReduceLogSumExp", ["x"], ["y"], keepdims=0)
sums = run(node, TensorProto.FLOAT, least, rank=0)
print("ReduceLogSumExp of three minus infinities: onnxruntime", sums[0], "onnx.reference", sums[1])
if not np.array_equal(ort, x) or not np.isinf(reference[2:]).all() or not np.isnan(sums[1]):
    sys.exit("onnx.reference is right now, or onnxruntime is not")
PY

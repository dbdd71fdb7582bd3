#!/usr/bin/env bash
# onnxruntime's `LogSoftmax` of a row with a NaN: in f32 the whole row is NaN, as in numpy and PyTorch.
# In f64 the others are finite, and positive: a "logarithm of a probability" of 44.
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
x = np.array([[0, 1, 2, np.nan]])
double, wanted = run(node, TensorProto.DOUBLE, x)
single = run(node, TensorProto.FLOAT, x.astype(np.float32))[0]
print("onnxruntime, f32   ", single)
print("onnxruntime, f64   ", double)
print("onnx.reference, f64", wanted)
if not np.isnan(single).all() or not (double[0, :3] > 0).all() or not np.isnan(wanted).all():
    sys.exit("the row is NaN in f64 too now, or no longer in f32")
PY

#!/usr/bin/env bash
# GroupNormalization takes the mean away, so a mean of 10,000 beside a deviation of 1 should change
# nothing but the last digits. onnxruntime and onnx.reference subtract squares in f32 (E[x^2] -
# E[x]^2): they give NaN, or numbers of 50 and more. A test needs float64 as its oracle.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 \
  onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
x = (np.random.default_rng(1).standard_normal((1, 2, 3)) + 1e4).astype(np.float32)
ones, zeros = np.ones(2, np.float32), np.zeros(2, np.float32)
node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=1)
dims = {"x": x, "s": ones, "b": zeros}
given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in dims.items()]
result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)]
graph = helper.make_graph([node], "g", given, result)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
wide = x.astype(np.float64)
found = {
    "float64": (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5),
    "onnxruntime": session.run(None, dims)[0],
    "onnx.reference": ReferenceEvaluator(model).run(None, dims)[0],
}
for name, values in found.items():
    print(f"{name:16}", np.asarray(values).ravel())
off = [np.abs(found[n] - found["float64"]).max() for n in ("onnxruntime", "onnx.reference")]
if all(np.isfinite(o) and o < 0.1 for o in off):
    sys.exit("both are right now")
PY

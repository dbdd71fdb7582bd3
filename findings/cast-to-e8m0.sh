#!/usr/bin/env bash
# float8e8m0 holds powers of two, no zero, no sign and no infinity. ONNX's table for Cast gives the
# largest number (2**127) for infinity. onnx.reference and ml_dtypes give NaN; onnxruntime follows
# the table. A negative number is 1 by onnx.reference, the least power by onnxruntime, NaN by
# ml_dtypes. Scales of microscaled formats (MX) have this type, so a test needs its own oracle.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 \
  onnxruntime==1.32.0 ml-dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
print("ml_dtypes", ml_dtypes.__version__)
x = np.array([np.inf, -1.0, 3.0, 1e-40], np.float32)
nodes = [
    helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.FLOAT8E8M0),
    helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
]
ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [len(x)]) for n in ("x", "y")]
graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
found = {
    "onnx.reference": ReferenceEvaluator(model).run(None, {"x": x})[0],
    "onnxruntime": session.run(None, {"x": x})[0],
    "ml_dtypes": x.astype(ml_dtypes.float8_e8m0fnu).astype(np.float32),
}
print(f"{'x':16}", x)
for name, values in found.items():
    print(f"{name:16}", values)
infinity = [float(v[0]) for v in found.values()]
negative = {str(float(v[1])) for v in found.values()}
expected = np.isnan(infinity[0]) and infinity[1] == 2.0**127 and np.isnan(infinity[2])
if not expected or len(negative) != 3:
    sys.exit("the three libraries give other numbers now")
PY

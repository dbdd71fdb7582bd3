#!/usr/bin/env bash
# RoiAlign of a region that lies outside of the image samples nothing, and is 0. onnxruntime and
# onnx.reference multiply the image's first element by 0 for such samples: it is NaN where that
# element is infinite, however far the region is from it.
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
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

given = {
    "x": np.ones((1, 1, 4, 4), np.float32),
    "rois": np.array([[6, 6, 9, 9]], np.float32),
    "batch": np.zeros(1, np.int64),
}
kinds = {"x": TensorProto.FLOAT, "rois": TensorProto.FLOAT, "batch": TensorProto.INT64}
ports = [helper.make_tensor_value_info(n, kinds[n], v.shape) for n, v in given.items()]
result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 1])]
graph = helper.make_graph([helper.make_node("RoiAlign", list(given), ["y"])], "g", ports, result)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=9)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
as_described = True
for first in (1, np.inf):
    given["x"][0, 0, 0, 0] = first
    for name, run in (("onnxruntime", session.run), ("onnx.reference", ReferenceEvaluator(model).run)):
        with np.errstate(invalid="ignore"):
            found = float(run(None, given)[0].squeeze())
        print(f"first element {first}: {name} gives {found} for a region outside")
        as_described &= np.isnan(found) if np.isinf(first) else found == 0
sys.exit(0 if as_described else 1)
PY

#!/usr/bin/env bash
# Resize with coordinate_transformation_mode=align_corners and scales: corners are to meet corners.
# 5 elements with a scale of 1.7 become floor(8.5) = 8. onnxruntime and PyTorch step by
# (5 - 1) / (8 - 1), and the last element is the input's last. onnx.reference steps by
# (5 - 1) / (8.5 - 1): its last element lies short of the corner. Models that torch.onnx exports from
# nn.Upsample(scale_factor=1.7, align_corners=True) have this form.
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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

node = helper.make_node(
    "Resize", ["x", "", "scales"], ["y"], mode="linear",
    coordinate_transformation_mode="align_corners",
)
scales = numpy_helper.from_array(np.array([1, 1.7], np.float32), "scales")
graph = helper.make_graph(
    [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])], [scales],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
x = np.arange(5, dtype=np.float32).reshape(1, 5)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
[found] = session.run(None, {"x": x})
[reference] = ReferenceEvaluator(model).run(None, {"x": x})
np.set_printoptions(precision=4, suppress=True)
print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
print("x             ", x[0])
print("onnxruntime   ", found[0])
print("onnx.reference", reference[0])
if abs(found[0, -1] - 4) > 1e-5 or abs(reference[0, -1] - 4) < 1e-2:
    sys.exit("both meet the corner now, or neither")
PY

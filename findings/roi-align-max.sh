#!/usr/bin/env bash
# RoiAlign of ONNX: "the value of the sampled locations are computed directly through bilinear interpolation", and
# mode="max" pools them. onnxruntime and onnx.reference take the largest of the four weighted neighbours in place of
# their sum: an image of ones gives 0.25 between four pixels. OpenVINO interpolates, then takes the largest. With "avg"
# all agree.
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
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
core = openvino.Core()
given = {
    "x": np.ones((1, 1, 4, 4), np.float32),
    "rois": np.array([[1.5, 1.5, 2.5, 2.5], [1, 1, 2, 2.5]], np.float32),
    "batch": np.zeros(2, np.int64),
}
found = {}
for mode in ("avg", "max"):
    graph = helper.make_graph(
        [helper.make_node("RoiAlign", [*given], ["y"], mode=mode, sampling_ratio=1)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 1, 1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.checker.check_model(model)
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found[mode] = [
        y.ravel().tolist()
        for y in (
            session.run(None, given)[0],
            ReferenceEvaluator(model).run(None, given)[0],
            core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0],
        )
    ]
    for name, y in zip(("onnxruntime", "onnx.reference", "OpenVINO"), found[mode], strict=True):
        print(f"{mode} of an image of ones, in the middle of four pixels and on a pixel's edge: {name:14} {y}")
if found["avg"] != [[1, 1]] * 3 or found["max"][2] != [1, 1]:
    sys.exit("the samples are interpolated now")
if found["max"][0] != [0.25, 0.75] or found["max"][1] != [0.25, 0.75]:
    sys.exit("the largest is taken otherwise now")
PY

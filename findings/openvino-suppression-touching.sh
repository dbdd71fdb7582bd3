#!/usr/bin/env bash
# NonMaxSuppression of ONNX drops a box whose overlap (IoU) with a chosen one is "strictly greater than iou_threshold";
# the default of the threshold is 0. OpenVINO drops it at the threshold too. So with the default, which means no overlap
# at all, it keeps one box of a class: boxes that do not meet have an overlap of 0, which is not less than 0.
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
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
text = onnx.defs.get_schema("NonMaxSuppression", 11).inputs[3].description
print(text)
core = openvino.Core()


def run(boxes, threshold):
    """Return the numbers of the chosen boxes in onnxruntime and in OpenVINO."""
    constants = {"most": np.array(10, np.int64)}
    if threshold is not None:
        constants["iou"] = np.array(threshold, np.float32)
    given = {"boxes": np.array([boxes], np.float32), "scores": np.array([[[0.9, 0.8, 0.7]]], np.float32)}
    graph = helper.make_graph(
        [helper.make_node("NonMaxSuppression", [*given, *constants], ["y"])], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 3])],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    other = core.compile_model(core.read_model(model.SerializeToString()), "CPU")(given)[0]
    return session.run(None, given)[0][:, 2].tolist(), other[:, 2].tolist()


far = [[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]]
half = [[0, 0, 2, 2], [0, 0, 1, 2], [9, 9, 10, 10]]  # the second is half of the first: IoU 0.5
for name, boxes, threshold, expected in (
    ("apart, the default", far, None, ([0, 1, 2], [0])),
    ("apart, 0", far, 0, ([0, 1, 2], [0])),
    ("apart, 0.01", far, 0.01, ([0, 1, 2], [0, 1, 2])),
    ("an overlap of 0.5, 0.5", half, 0.5, ([0, 1, 2], [0, 2])),
):
    found = run(boxes, threshold)
    print(f"{name}: onnxruntime {found[0]} OpenVINO {found[1]}")
    if found != expected:
        sys.exit("such boxes are chosen otherwise now")
PY

#!/usr/bin/env bash
# Resize of int8 with antialias=1: onnxruntime makes each negative sum 0, along one axis and then
# along the other, as if the type were uint8. int32 with the same numbers keeps them, and so does
# int8 without antialias. A quantised image model that shrinks signed features is silently clipped.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 \
  onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

print("onnxruntime", onnxruntime.__version__)


def resized(x: np.ndarray, antialias: int) -> np.ndarray:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=antialias)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.array([1, 1, 0.5, 0.5], np.float32), "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0].ravel()


x = np.repeat(np.array([-100, 40, -8, 96], np.int8), 4).reshape(1, 1, 4, 4)
found = {
    "int8, antialias": resized(x, 1),
    "int32, antialias": resized(x.astype(np.int32), 1),
    "int8": resized(x, 0),
}
for name, values in found.items():
    print(f"{name:18}", values)
lost, kept = found["int8, antialias"], found["int32, antialias"]
if not (kept < 0).any() or (np.abs(lost.astype(np.int32) - kept) <= 1).all():
    sys.exit("negative numbers are kept now")
PY

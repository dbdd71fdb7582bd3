#!/usr/bin/env bash
# onnxruntime's nearest `Resize` by `sizes` loses an index where the ratio is whole: 49 elements made 7,
# asymmetric and floor, are 0, 6, 13, 21, 27, 35, 42 in place of every seventh. It divides a position
# by an f32 scale. onnx.reference and the formula give 0, 7, 14, 21, 28, 35, 42.
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


node = helper.make_node(
    "Resize", ["x", "", "", "sizes"], ["y"], mode="nearest",
    coordinate_transformation_mode="asymmetric", nearest_mode="floor",
)
lost = []
for size, to in ((49, 7), (48, 8), (35, 7), (90, 10), (94, 47), (98, 7)):
    x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
    ort, reference = run(node, TensorProto.FLOAT, x, ("sizes", np.array([1, 1, 1, to])))
    wanted = np.arange(to) * (size // to)
    lost.append(int((ort.ravel() != wanted).sum()))
    print(f"{size} to {to}: onnxruntime has {lost[-1]} of {to} wrong, onnx.reference",
          int((reference.ravel() != wanted).sum()))
    if size == 49:
        print("  onnxruntime", ort.ravel().astype(int).tolist())
        print("  every 7th  ", wanted.tolist())
if not lost[0]:
    sys.exit("49 to 7 is right now")
PY

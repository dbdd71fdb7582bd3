#!/usr/bin/env bash
# AveragePool with ceil_mode and count_include_pad divides by the elements of a window that lie in the padded input:
# PyTorch, from which such nodes come, onnxruntime and onnx.reference. OpenVINO divides by the whole window, so the last
# row and column, which reach over the padding, are too small: 1.78 in place of 4 in the corner. Without padding it
# counts as the others do.
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
x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


def run(kernel, pad):
    """Return the average pool of a 4x4 image in onnxruntime, onnx.reference and OpenVINO."""
    node = helper.make_node(
        "AveragePool", ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[kernel - 1] * 2, pads=[pad] * 4,
        ceil_mode=1, count_include_pad=1,
    )
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, "h", "w"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    compiled = core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return session.run(None, {"x": x})[0], ReferenceEvaluator(model).run(None, {"x": x})[0], compiled(x)[0]


padded = np.pad(x[0, 0], 1)
text = [[padded[r:r + 3, c:c + 3].mean() for c in (0, 2, 4)] for r in (0, 2, 4)]
whole = [[padded[r:r + 3, c:c + 3].sum() / 9 for c in (0, 2, 4)] for r in (0, 2, 4)]
found = run(3, 1)
for name, y in zip(("onnxruntime", "onnx.reference", "OpenVINO"), found, strict=True):
    print(f"{name:15}", *(row.round(4).tolist() for row in y[0, 0]))
if not np.allclose(found[0], text) or not np.allclose(found[1], text) or not np.allclose(found[2], whole):
    sys.exit("the windows are counted otherwise now")
PY

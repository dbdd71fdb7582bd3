#!/usr/bin/env bash
# LpPool with ceil_mode has a last window that reaches over the edge. Its norm is that of the elements inside: of 5
# alone it is 5. OpenVINO and onnx.reference take the mean of the powers inside times the size of the window: 10 for p=1
# and a window of two, 7.07 for p=2. onnxruntime has 5.
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
x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
for p in (1, 2):
    node = helper.make_node("LpPool", ["x"], ["y"], p=p, kernel_shape=[2], strides=[2], ceil_mode=1)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString()
    found = {
        "onnxruntime": onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0],
        "onnx.reference": ReferenceEvaluator(model).run(None, {"x": x})[0],
        "OpenVINO": core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0],
    }
    norms = [np.linalg.norm(w, p) for w in ([1, 2], [3, 4], [5])]
    print(f"p={p}: norms of 1 2, of 3 4 and of 5:", np.round(norms, 4))
    for name, y in found.items():
        print(f"     {name:15}", y.ravel().round(4))
        expected = norms if name == "onnxruntime" else [*norms[:2], 5 * 2 ** (1 / p)]
        if not np.allclose(y.ravel(), expected, atol=1e-4):
            sys.exit("the last window is another now")
PY

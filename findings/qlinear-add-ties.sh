#!/usr/bin/env bash
# onnxruntime's QuantizeLinear rounds x / scale, halves to even, and then adds the zero point; its
# QLinearAdd adds the zero point first. With an odd zero point every tie lies one beside. So a graph
# changes where DequantizeLinear, Add, QuantizeLinear become the one operator, by its own optimiser
# too. A comparison of quantised models has to allow one step.
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
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__)
node = helper.make_node
fused = [
    node("QLinearAdd", ["x", "half", "nil", "x", "nought", "nil", "one", "five"], ["y"],
         domain="com.microsoft"),
]
steps = [
    node("DequantizeLinear", ["x", "half", "nil"], ["a"]),
    node("DequantizeLinear", ["x", "nought", "nil"], ["b"]),
    node("Add", ["a", "b"], ["c"]),
    node("QuantizeLinear", ["c", "one", "five"], ["y"]),
]
held = {
    "half": np.float32(0.25), "nought": np.float32(0.25), "one": np.float32(1),
    "nil": np.uint8(0), "five": np.uint8(5),
}
x = np.arange(12, dtype=np.uint8)


def run(nodes: list) -> np.ndarray:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, x.shape)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in held.items()],
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


one, four = run(fused), run(steps)
print("sum before rounding  ", x * 0.5)
print("QLinearAdd           ", one)
print("Dequantize, Add, Quantize", four)
if (one == four).all():
    sys.exit("both round alike now")
PY

#!/usr/bin/env bash
# OpenVINO leaves out `layout` of RNN, LSTM and GRU of ONNX: with layout=1 the first axis of X is the batch,
# and OpenVINO takes it for time. Of three sequences of one step it makes one of three steps, and gives the
# right shape.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 openvino==2026.4.1
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper

print("openvino", openvino.__version__)
core = openvino.Core()
x = np.array([[[1, 2]], [[3, 4]], [[5, 6]]], np.float32) / 10
SIZE = 4


def run(kind, gates):
    """Return the first unit of Y with layout=1 and, in the other order, with layout=0."""
    weights = [
        numpy_helper.from_array(np.full((1, gates * SIZE, n), 0.5, np.float32), name)
        for name, n in (("w", 2), ("r", SIZE))
    ]
    found = []
    for layout in (1, 0):
        fed = x if layout else x.swapaxes(0, 1).copy()
        graph = helper.make_graph(
            [helper.make_node(kind, ["x", "w", "r"], ["y"], hidden_size=SIZE, layout=layout)], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, fed.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", "c", SIZE])],
            weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
        onnx.checker.check_model(model)
        compiled = core.compile_model(
            core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
        found.append(compiled({"x": fed})[0].reshape(3, SIZE)[:, 0])
    return found


expected = np.tanh(x[:, 0].sum(-1) / 2)
rnn = run("RNN", 1)
print("RNN, one unit of each sequence, in numpy    ", expected)
print("OpenVINO, layout=1                          ", rnn[0])
print("OpenVINO, layout=0                          ", rnn[1])
wrong = not np.allclose(rnn[0], expected, atol=1e-2)
for kind, gates in (("LSTM", 4), ("GRU", 3)):
    found = run(kind, gates)
    print(f"{kind}: layout=1 {found[0]}, layout=0 {found[1]}")
    wrong = wrong and not np.allclose(*found, atol=1e-2)
if not wrong or not np.allclose(rnn[1], expected, atol=1e-5):
    sys.exit("layout is followed now")
PY

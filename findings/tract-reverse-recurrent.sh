#!/usr/bin/env bash
# tract runs RNN, LSTM and GRU of ONNX with direction="reverse" forwards. onnxruntime is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import TensorProto, helper, numpy_helper

print("tract", version("tract"), "onnxruntime", onnxruntime.__version__)
x = np.array([1, 2, 30], np.float32).reshape(3, 1, 1) / 10


def run(kind, gates, direction):
    """Return the last state of a net of one unit in onnxruntime and in tract."""
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "w", "r"], ["", "h"], hidden_size=1, direction=direction)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 1, 1])],
        [numpy_helper.from_array(np.full((1, gates, 1), 0.5, np.float32), n) for n in "wr"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        read = tract.onnx().load(file.name)
        read.set_input_fact(0, "3,1,1,f32")
        [h] = read.into_model().into_runnable().run([x])
    return session.run(None, {"x": x})[0].item(), h.to_numpy().item()


state = 0.0
for step in x.ravel()[::-1].astype(np.float64):
    state = np.tanh(0.5 * step + 0.5 * state)
print("RNN in reverse, in f64:", round(state, 6))
for kind, gates in (("RNN", 1), ("LSTM", 4), ("GRU", 3)):
    forward, reverse = run(kind, gates, "forward"), run(kind, gates, "reverse")
    print(f"{kind}: forward {forward[0]:.6f} and {forward[1]:.6f},", end=" ")
    print(f"reverse: onnxruntime {reverse[0]:.6f}, tract {reverse[1]:.6f}")
    if abs(reverse[1] - forward[1]) > 1e-6 or abs(reverse[0] - reverse[1]) < 1e-3:
        sys.exit("reverse is reverse now")
    if kind == "RNN" and abs(reverse[0] - state) > 1e-5:
        sys.exit("onnxruntime gives another state now")
PY

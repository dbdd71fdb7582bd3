#!/usr/bin/env bash
# ReduceLogSumExp is there so that exp does not overflow: of 1000 and 1000 it is 1000.69. tract and tinygrad's ONNX
# runner take the logarithm of the sum of exponentials as it stands: infinity from 89 on, minus infinity from -104 down.
# tract's LogSoftmax is minus infinity there, too, -87.5 in place of -100, and tinygrad's is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import TensorProto, helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnxruntime", "tract", "tinygrad")))


def run(op, numbers, size):
    """Return the result of a node in onnxruntime, tract and tinygrad."""
    x = np.array(numbers, np.float32)
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        read = tract.onnx().load(file.name)
        read.set_input_fact(0, f"{len(x)},f32")
        first = read.into_model().into_runnable().run([x])[0].to_numpy()
        other = OnnxRunner(file.name)({"x": Tensor(x)})["y"].numpy()
    return [y.ravel() for y in (session.run(None, {"x": x})[0], first, other)]


for op, numbers, size, tracts, tinygrads in (
    ("ReduceLogSumExp", [50, 50], 1, [50.693], [50.693]),
    ("ReduceLogSumExp", [1000, 1000], 1, [np.inf], [np.inf]),
    ("ReduceLogSumExp", [-200, -200], 1, [-np.inf], [-np.inf]),
    ("LogSoftmax", [0, -200, 100], 3, [-87.523, -np.inf, 0], [-100, -300, 0]),
):
    right, first, other = run(op, numbers, size)
    print(f"{op} of {numbers}: onnxruntime {right} tract {first} tinygrad {other}")
    x = np.array(numbers, np.float64)
    exact = [np.logaddexp.reduce(x)] if size == 1 else x - np.logaddexp.reduce(x)
    if not np.allclose(right, exact, atol=1e-3):
        sys.exit("onnxruntime's is another now")
    if not np.allclose(first, tracts, atol=0.1) or not np.allclose(other, tinygrads, atol=1e-3):
        sys.exit("the largest is taken out now")
PY

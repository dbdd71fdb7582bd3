#!/usr/bin/env bash
# tinygrad computes powers of integers in f32 where the exponent is a tensor, so in ONNX's Pow of int32: 10 to the power
# of 9 is 999,999,552. 2 to the power of -1 is 1, which onnxruntime cuts to 0. The type says int32, and small powers are
# exact.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnxruntime", "tinygrad")))
given = {"x": np.array([3, 10, 2], np.int32), "n": np.array([2, 9, -1], np.int32)}
graph = helper.make_graph(
    [helper.make_node("Pow", ["x", "n"], ["y"])], "g",
    [helper.make_tensor_value_info(name, TensorProto.INT32, [3]) for name in given],
    [helper.make_tensor_value_info("y", TensorProto.INT32, [3])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
right = session.run(None, given)[0]
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    found = OnnxRunner(file.name)({name: Tensor(a) for name, a in given.items()})["y"].numpy()
print("3 ** 2, 10 ** 9, 2 ** -1: onnxruntime", right, "tinygrad", found, found.dtype)
if right.tolist() != [9, 10**9, 0]:
    sys.exit("onnxruntime's powers are others now")
if found.dtype != np.int32 or found[0] != 9 or found[1] == 10**9 or found[2] == 0:
    sys.exit("powers are exact now")
PY

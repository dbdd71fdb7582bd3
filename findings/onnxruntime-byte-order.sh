#!/usr/bin/env bash
# onnxruntime takes a numpy array of the other byte order and reads its bytes as they lie: 1.0 of
# type ">f4" arrives as 4.6e-41, without an error or a warning. numpy and PyTorch convert or refuse.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

node = helper.make_node("Identity", ["x"], ["y"])
ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
opset = [helper.make_opsetid("", 22)]
model = helper.make_model(
    helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=opset, ir_version=10
)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
x = np.array([1, 2], np.dtype(np.float32).newbyteorder())
print("onnxruntime", onnxruntime.__version__, "numpy", np.__version__)
(found,) = session.run(None, {"x": x})
print("array", x, "of type", x.dtype, "arrives as", found, "of type", found.dtype)
if not np.array_equal(found, x.view(np.float32)):
    sys.exit("bytes in the other order are read otherwise now")
PY

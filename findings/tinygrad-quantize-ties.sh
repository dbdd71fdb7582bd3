#!/usr/bin/env bash
# QuantizeLinear of ONNX rounds halves to even. tinygrad's ONNX runner does so for int8. For uint8 it adds 0.4999999 and
# cuts: 0.5 is 0 and 1.5 is 1, and from 2.5 on, where f32 has no room for the difference, halves go up: 2.5 is 3, 4.5 is
# 5. Activations of 8-bit models are uint8, and half of their ties lie one beside onnxruntime's.
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
from onnx import TensorProto, helper, numpy_helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnxruntime", "tinygrad")))
x = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5], np.float32)
found = {}
for kind in (np.int8, np.uint8):
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), x.shape)],
        [numpy_helper.from_array(np.array(1, np.float32), "scale"), numpy_helper.from_array(np.array(0, kind), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        other = OnnxRunner(file.name)({"x": Tensor(x)})["y"].numpy().tolist()
    found[kind.__name__] = session.run(None, {"x": x})[0].tolist(), other
print("numbers", x)
for kind, rows in found.items():
    print(f"{kind:6} onnxruntime {rows[0]} tinygrad {rows[1]}")
even = np.rint(x).astype(int).tolist()
if found["int8"] != (even, even) or found["uint8"] != (even, [0, 1, 3, 4, 5, 6, 7, 8]):
    sys.exit("halves are rounded otherwise now")
PY

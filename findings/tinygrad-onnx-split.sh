#!/usr/bin/env bash
# Split of ONNX by num_outputs: "if the tensor is not evenly splittable ... the last chunk will be smaller", so 7 in 3
# parts are 3, 3 and 1, as torch.chunk has it. tinygrad's ONNX runner makes 3, 2 and 2 of it, numpy's array_split. Every
# element is there, in a part beside.
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

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "tinygrad")))
print(onnx.defs.get_schema("Split", 18).attributes["num_outputs"].description)
x = np.arange(7, dtype=np.float32)
graph = helper.make_graph(
    [helper.make_node("Split", ["x"], ["a", "b", "c"], num_outputs=3)], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [7])],
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size]) for n, size in zip("abc", (3, 3, 1), strict=True)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
right = [y.tolist() for y in session.run(None, {"x": x})]
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    other = [y.numpy().tolist() for y in OnnxRunner(file.name)({"x": Tensor(x)}).values()]
print("onnxruntime", right)
print("tinygrad   ", other)
if [len(y) for y in right] != [3, 3, 1] or [len(y) for y in other] != [3, 2, 2]:
    sys.exit("the parts are others now")
PY

#!/usr/bin/env bash
# MatMulInteger of ONNX: a vector of zero points of A is "per row", "an M element vector" for A of M rows.
# onnx.reference and tinygrad subtract it along the columns, where it broadcasts for a square A and raises for others.
# OpenVINO and tract take rows; onnxruntime refuses the vector. So the implementation that belongs to the text refutes
# the right ones, and a converter that is tested against it writes the vector for the wrong axis.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 openvino==2026.4.1 tract==0.23.9 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import openvino
import tract
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnx", "openvino", "tract", "tinygrad")))
print(onnx.defs.get_schema("MatMulInteger", 10).inputs[2].description.split(". ")[3])
given = {
    "a": np.array([[1, 2], [3, 4]], np.uint8),
    "b": np.array([[10, 20], [30, 40]], np.uint8),
    "zero": np.array([3, 1], np.uint8),
}
graph = helper.make_graph(
    [helper.make_node("MatMulInteger", ["a", "b", "zero"], ["y"])], "g",
    [helper.make_tensor_value_info(n, TensorProto.UINT8, a.shape) for n, a in given.items()],
    [helper.make_tensor_value_info("y", TensorProto.INT32, [2, 2])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
core = openvino.Core()
found = {
    "onnx.reference": ReferenceEvaluator(model).run(None, given)[0],
    "OpenVINO": core.compile_model(core.read_model(model.SerializeToString()), "CPU")(given)[0],
}
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    read = tract.onnx().load(file.name)
    for i, fact in enumerate(("2,2,u8", "2,2,u8", "2,u8")):
        read.set_input_fact(i, fact)
    found["tract"] = read.into_model().into_runnable().run(list(given.values()))[0].to_numpy()
    found["tinygrad"] = OnnxRunner(file.name)({n: Tensor(a) for n, a in given.items()})["y"].numpy()
a, b, zero = (given[n].astype(np.int32) for n in ("a", "b", "zero"))
rows, columns = (a - zero[:, None]) @ b, (a - zero) @ b
print("rows (the text)", rows.tolist(), " columns", columns.tolist())
for name, y in found.items():
    print(f"{name:15}", y.tolist())
    if not np.array_equal(y, rows if name in ("OpenVINO", "tract") else columns):
        sys.exit("the vector is read otherwise now")
PY

#!/usr/bin/env bash
# openvino.save_model stores weights as f16 unless compress_to_fp16=False is given, and clips what f16 does not hold:
# 16,777,216 comes back as 65,504, 100,000 too, without a word and with no infinity that would tell. A tensor in which
# most numbers lie outside of f16's range stays f32. Tables of positions, of ids as floats, or a scale of 1e5 in a
# vector are other numbers in the saved model; the model in memory is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 openvino==2026.4.1
cd "$work"
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper

print("openvino", openvino.__version__, "onnx", onnx.__version__)
core = openvino.Core()


def run(model):
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled(np.zeros(8, np.float32))[0].tolist()


def saved(weights):
    """Return weights read back from the model in memory, the saved one, and the one saved as f32."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])],
        [numpy_helper.from_array(np.array(weights, np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    read = core.read_model(model.SerializeToString())
    openvino.save_model(read, "default.xml")
    openvino.save_model(read, "f32.xml", compress_to_fp16=False)
    return run(read), run(core.read_model("default.xml")), run(core.read_model("f32.xml"))


few, most = [16777216, 100000, -70000, 5, 4, 3, 2, 1], [100000] * 7 + [1]
found = {"few beyond f16": saved(few), "most beyond f16": saved(most)}
for name, rows in found.items():
    print(name)
    for title, row in zip(("in memory", "save_model", "compress_to_fp16=False"), rows, strict=True):
        print(f"  {title:23}", row)
if found["few beyond f16"] != (few, [65504, 65504, -65504, *few[3:]], few):
    sys.exit("few numbers beyond f16 are saved otherwise now")
if found["most beyond f16"] != (most, most, most):
    sys.exit("most numbers beyond f16 are saved otherwise now")
PY

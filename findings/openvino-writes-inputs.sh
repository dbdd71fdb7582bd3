#!/usr/bin/env bash
# A compiled model of OpenVINO is called with numpy arrays and, by default, reads them in place (share_inputs). It keeps
# pointing at them: a later call with share_inputs=False copies its inputs there, so the array of the call before holds
# other numbers afterwards. An input that a call leaves out is taken from the call before, without an error. An array
# that is kept, a state or a mask, changes or comes back where nobody asked for it.
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
from onnx import TensorProto, helper

print("openvino", openvino.__version__, "numpy", np.__version__)
graph = helper.make_graph(
    [helper.make_node("Sub", ["a", "b"], ["y"])], "g",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "ab"],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
onnx.checker.check_model(model)
core = openvino.Core()
run = core.compile_model(core.read_model(model.SerializeToString()), "CPU")


def f32(*values):
    return np.array(values, np.float32)


a, b = f32(5), f32(3)
print("a", a, "b", b, "a - b =", run({"a": a, "b": b})[0])
print("9 - 1 with share_inputs=False =", run({"a": f32(9), "b": f32(1)}, share_inputs=False)[0], " now a", a, "b", b)
if (a[0], b[0]) != (9, 1):
    sys.exit("arrays of the call before are left alone now")
run({"a": f32(5), "b": f32(3)})
try:
    found = run({"a": f32(20)})[0]
except Exception as error:
    sys.exit(f"an input that is left out is refused now: {error}")
print("20 and no b, behind a call with b = 3:", found)
if found[0] != 17:
    sys.exit("an input that is left out is another now")
PY

#!/usr/bin/env bash
# OpenVINO's Python API casts an array of another type to the input's: 1.9 as int64 is 1, 300 as int8 is 44, -1 as uint8
# is 255, 2**40 + 1 as int32 is 1, and of a complex number the imaginary part is gone. numpy warns of the last; of the
# others nobody does. onnxruntime refuses each. Ids that come as floats, as pandas makes them, run.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
"$work/venv/bin/python" -W ignore - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper

onnxruntime.set_default_logger_severity(4)
print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "numpy", np.__version__)
core = openvino.Core()


def run(kind, x):
    """Return x through an identity of a type, in OpenVINO, and the first words of onnxruntime's error."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", kind, ["n"])], [helper.make_tensor_value_info("y", kind, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    try:
        session.run(None, {"x": x})
        refused = False
    except Exception:
        refused = True
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU")({"x": x})[0].tolist(), refused


changed = []
for kind, x, expected in (
    ("int64", np.array([1.9, -1.9]), [1, -1]),
    ("int8", np.array([300, -200]), [44, 56]),
    ("uint8", np.array([-1, 256]), [255, 0]),
    ("int32", np.array([2**40 + 1]), [1]),
    ("float32", np.array([1 + 2j]), [1.0]),
    ("float32", np.array([1e300]), [np.inf]),
):
    found, refused = run(kind, x)
    print(f"{x!s:20} as {kind:7}: OpenVINO {found!s:10} onnxruntime {'refuses' if refused else 'takes it'}")
    if found != expected or not refused:
        changed.append(kind)
if changed:
    sys.exit(f"cast otherwise now: {changed}")
PY

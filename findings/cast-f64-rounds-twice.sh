#!/usr/bin/env bash
# A cast of f64 to bf16 or to an 8-bit float goes through f32 in ml_dtypes, onnxruntime and OpenVINO, and
# is rounded twice: 1 + 2**-8 + 2**-40 lies above the middle of 1 and the next number of bf16, and gives 1.
# To f16 numpy rounds once, and onnxruntime twice. PyTorch does as onnxruntime.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 ml-dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, helper

print("ml_dtypes", ml_dtypes.__version__, end=" ")
print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
core = openvino.Core()
kinds = {
    "bfloat16": (8, TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "float8_e4m3fn": (4, TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "float8_e5m2": (3, TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    "float16": (11, TensorProto.FLOAT16, np.float16),
}
for name, (digits, onnx_kind, numpy_kind) in kinds.items():
    middle = 1 + 2.0**-digits
    x = np.array([middle + 2.0**-40])
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=onnx_kind),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.DOUBLE),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, [1]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    text = model.SerializeToString()
    session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    found = {
        "numpy": x.astype(numpy_kind).astype(np.float64).item(),
        "onnxruntime": session.run(None, {"x": x})[0].item(),
        "OpenVINO": core.compile_model(core.read_model(text), "CPU", hint)({"x": x})[0].item(),
    }
    step = Fraction(2) ** (1 - digits)
    expected = float(round(Fraction(x.item()) / step) * step)
    print(f"1 + 2**-{digits} + 2**-40 as {name}: nearest {expected}", found)
    if name == "float16":
        found.pop("OpenVINO")
        if found != {"numpy": expected, "onnxruntime": 1.0}:
            sys.exit("f16 is rounded otherwise now")
    elif set(found.values()) != {1.0}:
        sys.exit("one of them rounds once now")
PY

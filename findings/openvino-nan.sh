#!/usr/bin/env bash
# OpenVINO on CPUs loses NaN: exp(NaN) is infinity, relu(NaN) 0, the least of 1, NaN, 3 is 3,
# which is neither NaN nor the least number. `Greater` with a NaN is true with the vector code of
# SSE4.1, and false with that of AVX2: ONEDNN_MAX_CPU_ISA picks the code.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
cat >"$work/nan.py" <<'PY'
import sys

import numpy as np
import onnxruntime
import openvino
from onnx import helper, numpy_helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)


def run(node, kind, *arrays, opset=21, dims=None):
    """Return the first result of a node in onnxruntime and in OpenVINO, in f32."""
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(node.input, arrays, strict=True)
    ]
    dims = [f"d{i}" for i in range(arrays[0].ndim)] if dims is None else dims
    result = helper.make_tensor_value_info(
        node.output[0], helper.np_dtype_to_tensor_dtype(np.dtype(kind)), dims
    )
    graph = helper.make_graph([node], "g", inputs, [result])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    model = made.SerializeToString()
    feeds = dict(zip(node.input, arrays, strict=True))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    core = openvino.Core()
    other = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return session.run(None, feeds)[0], other(feeds)[0]


nan = np.array([np.nan, 1], np.float32)
exp = run(helper.make_node("Exp", ["x"], ["y"]), np.float32, nan)
relu = run(helper.make_node("Relu", ["x"], ["y"]), np.float32, nan)
least = run(
    helper.make_node("ReduceMin", ["x"], ["y"], keepdims=0), np.float32,
    np.array([1, np.nan, 3], np.float32), dims=[],
)
greater = run(helper.make_node("Greater", ["a", "b"], ["y"]), np.bool_, nan * 0 + np.nan, nan)
print("exp of NaN            onnxruntime", exp[0][0], "OpenVINO", exp[1][0])
print("relu of NaN           onnxruntime", relu[0][0], "OpenVINO", relu[1][0])
print("least of 1, NaN, 3    onnxruntime", least[0], "OpenVINO", least[1])
print("NaN > NaN, NaN > 1    onnxruntime", greater[0], "OpenVINO", greater[1])
if not np.isposinf(exp[1][0]) or relu[1][0] != 0 or least[1] != 3:
    sys.exit("OpenVINO keeps NaN now")
if greater[1].tolist() != [sys.argv[1] == "True"] * 2:
    sys.exit("Greater with a NaN is another now")
PY
ONEDNN_MAX_CPU_ISA=SSE41 "$work/venv/bin/python" "$work/nan.py" True
ONEDNN_MAX_CPU_ISA=AVX2 "$work/venv/bin/python" "$work/nan.py" False

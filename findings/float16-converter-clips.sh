#!/usr/bin/env bash
# onnxconverter-common's `convert_float_to_float16` clips weights to 10,000 and not to the 65,504
# of f16: 20,000 becomes 10,000, a mask of -1e9 becomes -10,000. Small numbers become 1e-7, where
# f16 goes on to 6e-8. The copy in onnxruntime.transformers keeps 20,000.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxconverter-common==1.16.0 sympy==1.14.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxconverter_common import float16
from onnxruntime.transformers.float16 import convert_float_to_float16

onnxruntime.set_default_logger_severity(4)
print("onnx", version("onnx"), "onnxruntime", version("onnxruntime"), "onnxconverter-common", version("onnxconverter-common"))


def model(nodes, x, dims, opset, *constants):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(c, name) for name, c in constants],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def run(made, x):
    """Return the result of a model without onnxruntime's own rewrites."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


x = np.ones(4, np.float32)
weights = np.array([20000, -1e9, 6e-8, 1], np.float32)
old = model([helper.make_node("Mul", ["x", "w"], ["y"])], x, [4], 17, ("w", weights))
found = {}
for name, convert in (
    ("onnxconverter-common", float16.convert_float_to_float16),
    ("onnxruntime.transformers", convert_float_to_float16),
):
    found[name] = run(convert(old, keep_io_types=True), x)
    print(f"{name:24}", found[name])
print(f"{'numpy':24}", weights.astype(np.float16).astype(np.float32))
if found["onnxconverter-common"][0] != 10000 or found["onnxruntime.transformers"][0] != 20000:
    sys.exit("weights are clipped elsewhere now")
PY

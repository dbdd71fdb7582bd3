#!/usr/bin/env bash
# onnx.version_converter takes `Softmax` of opset 13 to opset 11 and `Hardmax` of opset 11 to
# opset 13 as they are. The older ones flatten the input to two axes, the newer ones go along one,
# so all numbers differ. `Softmax` of opset 11 to 13 is rewritten as it has to be.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter

onnxruntime.set_default_logger_severity(4)
print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)


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


x = np.array([[[1, 5, 3], [2, 0, 4]]], np.float32)
differs = {}
for kind, opset, to in (("Softmax", 11, 13), ("Softmax", 13, 11), ("Hardmax", 11, 13)):
    node = helper.make_node(kind, ["x"], ["y"], axis=1)
    old = model([node], x, [1, 2, 3], opset)
    new = version_converter.convert_version(old, to)
    before, after = run(old, x).ravel(), run(new, x).ravel()
    differs[kind, opset] = not np.allclose(before, after)
    print(f"{kind} {opset} -> {to}: before", before.round(4), "after", after.round(4))
if list(differs.values()) != [False, True, True]:
    sys.exit("other conversions differ now")
PY

#!/usr/bin/env bash
# onnx.version_converter moves `Upsample` of opset 9 and `Resize` of opset 10 to later opsets
# without their coordinates. The old operators divide a position by the scale (asymmetric). The
# converted nodes have no coordinate_transformation_mode, whose default is half_pixel, so that a
# linear enlargement has other numbers. No message.
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


x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
scales = ("s", np.array([1, 1, 1, 2], np.float32))
dims = [1, 1, 1, 8]
differs = []
for kind, opset, to in (("Upsample", 9, 13), ("Resize", 10, 13)):
    old = model([helper.make_node(kind, ["x", "s"], ["y"], mode="linear")], x, dims, opset, scales)
    new = version_converter.convert_version(old, to)
    (node,) = (n for n in new.graph.node if n.op_type == "Resize")
    modes = [a.name for a in node.attribute]
    before, after = run(old, x).ravel(), run(new, x).ravel()
    print(kind, "of opset", opset, before)
    print("  as opset", to, "with", modes, after)
    differs.append(not np.allclose(before, after))
if differs != [True, True]:
    sys.exit("coordinates are kept now")
PY

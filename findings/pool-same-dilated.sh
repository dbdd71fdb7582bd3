#!/usr/bin/env bash
# ONNX pads `auto_pad` SAME so that a result has ceil(input / stride) elements. onnxruntime's
# `MaxPool` and `AveragePool` leave dilations out of that: 5x5 with a window of 2x2 and dilations
# of 2 gives 4x4. Shape inference and onnx.reference have 5x5. `Conv` of the same attributes is
# refused.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)


def run(node, x, *constants):
    """Return what shape inference, onnxruntime and onnx.reference make of a node."""
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(c, n) for n, c in constants],
    )
    opset = [helper.make_opsetid("", 22)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    found = [d.dim_value for d in inferred.graph.output[0].type.tensor_type.shape.dim]
    dims = [f"d{i}" for i in range(len(found))]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, dims))
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ort = session.run(None, {"x": x})[0]
    return found, ort, ReferenceEvaluator(model).run(None, {"x": x})[0]


x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
found = []
for kind in ("MaxPool", "AveragePool"):
    node = helper.make_node(
        kind, ["x"], ["y"], kernel_shape=[2, 2], dilations=[2, 2], auto_pad="SAME_UPPER"
    )
    dims, ort, reference = run(node, x)
    print(kind, "inferred", dims[2:], "onnx.reference", list(reference.shape[2:]), end=" ")
    print("onnxruntime", list(ort.shape[2:]))
    found.append((dims[2], reference.shape[2], ort.shape[2]))
if found != [(5, 5, 4)] * 2:
    sys.exit("the sizes are others now")
PY

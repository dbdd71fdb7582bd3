#!/usr/bin/env bash
# `STFT` gives half of the spectrum by default: 5 bins of a window of 8. Shape inference says 8
# where the window is an input and frame_length is not, in strict mode too. onnxruntime and
# onnx.reference give 5.
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


x = np.random.default_rng(0).standard_normal((1, 16, 1)).astype(np.float32)
node = helper.make_node("STFT", ["x", "step", "window"], ["y"])
dims, ort, reference = run(
    node, x, ("step", np.array(4)), ("window", np.ones(8, np.float32))
)
print("inferred", dims, "onnxruntime", ort.shape, "onnx.reference", reference.shape)
if (dims[2], ort.shape[2], reference.shape[2]) != (8, 5, 5):
    sys.exit("the sizes are others now")
PY

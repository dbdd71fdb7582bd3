#!/usr/bin/env bash
# onnxruntime's `Slice` with a negative step takes an end of INT64_MAX or INT32_MAX for "to the
# first element". The text clamps an end to the dims, where such a slice is empty, as in numpy and
# onnx.reference. An end of 100 is empty in onnxruntime too.
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


x = np.arange(7, dtype=np.float32)
node = helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["y"])
sizes = []
for end in (100, 2**31 - 1, 2**63 - 1):
    parts = {"start": 4, "end": end, "axis": 0, "step": -1}
    dims, ort, reference = run(node, x, *((k, np.array([v])) for k, v in parts.items()))
    print(f"x[4:{end}:-1] numpy", x[4:end:-1], "onnx.reference", reference, "onnxruntime", ort)
    sizes.append((dims, ort.size, reference.size))
if sizes != [([0], 0, 0), ([0], 5, 0), ([0], 5, 0)]:
    sys.exit("an end beyond the dims is read otherwise now")
PY

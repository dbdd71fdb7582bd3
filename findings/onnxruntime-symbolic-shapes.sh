#!/usr/bin/env bash
# onnxruntime's SymbolicShapeInference, which is run ahead of quantization, states wrong dims: it leaves out
# batch_dims of GatherND, axes of Resize, and the shorter last part of a Split into num_outputs, and counts one
# too many of a Slice backwards. onnx.shape_inference is right in each.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 sympy==1.14.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

onnxruntime.set_default_logger_severity(4)
print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
node = helper.make_node


def dims(made):
    kinds = [v.type.tensor_type for v in made.graph.output]
    return [[d.dim_value for d in k.shape.dim] for k in kinds]


cases = [
    ([2, 2, 2], {"i": np.array([[1], [0]])}, node("GatherND", ["x", "i"], ["y"], batch_dims=1)),
    (
        [1, 1, 4, 4], {"s": np.array([2, 3], np.float32)},
        node("Resize", ["x", "", "s"], ["y"], mode="nearest", axes=[2, 3]),
    ),
    ([7], {}, node("Split", ["x"], ["y", "z"], num_outputs=2)),
    (
        [20], {"a": np.array([20]), "b": np.array([0]), "c": np.array([0]), "d": np.array([-1])},
        node("Slice", ["x", "a", "b", "c", "d"], ["y"]),
    ),
]
wrong = 0
for shape, constants, op in cases:
    graph = helper.make_graph(
        [op], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in op.output],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    results = [list(y.shape) for y in session.run(None, {"x": np.zeros(shape, np.float32)})]
    strict = dims(onnx.shape_inference.infer_shapes(model, strict_mode=True))
    symbolic = dims(SymbolicShapeInference.infer_shapes(model))
    print(f"{op.op_type} of {shape}: {results}, by onnx {strict}, by onnxruntime's tool {symbolic}")
    wrong += strict == results and symbolic != results
if wrong != len(cases):
    sys.exit("some of these dims are right now")
PY

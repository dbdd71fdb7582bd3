#!/usr/bin/env bash
# Add, Mul and their kin of opset 6 broadcast their second operand from `axis` on: axis=1 adds a vector to channels, as
# old models add a bias behind a Conv. onnx.version_converter writes it for opset 7 as if axis were 0: the vector of an
# image's 3 channels goes along the batch, and of one image come three. With a batch of 2 it raises, and with a batch of
# 3 the shape is right and the numbers are wrong. Suffixes that end at the last axis are right.
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
from onnx import TensorProto, helper, version_converter

onnxruntime.set_default_logger_severity(4)
print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
vector = np.array([1, 2, 3], np.float32)


def run(batch, axis):
    """Return zeros plus a vector of three from `axis` on, by the model moved to opset 7; None if that raises."""
    dims = [batch, 3, 2] if axis == 1 else [batch, 2, 3]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=axis)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims),
         helper.make_tensor_value_info("b", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3)
    onnx.checker.check_model(model)
    try:
        made = version_converter.convert_version(model, 7)
    except RuntimeError as error:
        return None, str(error).split(": ")[-1]
    made.ir_version = 8
    axes = [a.ints for node in made.graph.node for a in node.attribute if a.name == "axes"]
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    del made.graph.value_info[:]  # dims that are stated would be compared
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": np.zeros(dims, np.float32), "b": vector})[0]
    return y, f"Unsqueeze of axes {[list(a) for a in axes]}"


for batch, axis in ((1, 1), (2, 1), (3, 1), (1, 2)):
    dims = (batch, 3, 2) if axis == 1 else (batch, 2, 3)
    expected = np.broadcast_to(vector[:, None] if axis == 1 else vector, dims)
    found, why = run(batch, axis)
    shown = "raises" if found is None else f"{found.shape} {found.ravel()[:6].tolist()}"
    print(f"axis {axis} of {dims}: by the text {expected.ravel()[:6].tolist()} converted {shown} ({why[:90]})")
    right = found is not None and found.shape == dims and np.array_equal(found, expected)
    if right != (axis == 2):
        sys.exit("the axis is followed now")
PY

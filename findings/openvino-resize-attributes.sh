#!/usr/bin/env bash
# OpenVINO reads a Resize of ONNX and leaves out three of its attributes without a word:
# keep_aspect_ratio_policy (2x2 to at most 7x8 is 7x8 in place of 7x7), antialias and exclude_outside.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
core = openvino.Core()


def run(x, inputs, constant, **attributes):
    """Return the results of a Resize in onnxruntime, in OpenVINO, and in OpenVINO without the attribute."""
    made = []
    for kept in (attributes, {k: v for k, v in attributes.items() if k in ("mode", "axes")}):
        graph = helper.make_graph(
            [helper.make_node("Resize", inputs, ["y"], **kept)], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "c", "h", "w"])],
            [numpy_helper.from_array(constant, "c")],
        )
        opset = [helper.make_opsetid("", 19)]
        made.append(helper.make_model(graph, opset_imports=opset, ir_version=10))
        onnx.checker.check_model(made[-1])
    session = onnxruntime.InferenceSession(
        made[0].SerializeToString(), providers=["CPUExecutionProvider"]
    )
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    other = [
        core.compile_model(core.read_model(m.SerializeToString()), "CPU", hint)({"x": x})[0]
        for m in made
    ]
    return session.run(None, {"x": x})[0], *other


x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
scales, smaller = ["x", "", "c"], np.array([1, 1, 0.6, 0.6], np.float32)
policy = run(
    x[:, :, :2, :2], ["x", "", "", "c"], np.array([7, 8]),
    mode="nearest", axes=[2, 3], keep_aspect_ratio_policy="not_larger",
)
antialias = run(x, scales, smaller, mode="linear", antialias=1)
outside = run(x, scales, smaller, mode="cubic", exclude_outside=1)
print("not_larger, sizes: onnxruntime", policy[0].shape, "OpenVINO", policy[1].shape)
for name, found in (("antialias", antialias), ("exclude_outside", outside)):
    print(f"{name}: onnxruntime {found[0].ravel()} OpenVINO {found[1].ravel()}", end=" ")
    print("without the attribute", found[2].ravel())
if policy[0].shape != (1, 1, 7, 7) or policy[1].shape != (1, 1, 7, 8):
    sys.exit("the policy is followed now")
for found in (antialias, outside):
    if np.allclose(found[0], found[1], atol=1e-3) or not np.array_equal(found[1], found[2]):
        sys.exit("the attribute is followed now")
PY

#!/usr/bin/env bash
# onnx.reference, the implementation that belongs to ONNX's text. LRN: it normalises as many channels as the batch has
# images, so of one image the first channel alone. LpNormalization with p=1 divides by the sum and not by the sum of
# magnitudes: -3, 4 stay as they are. LayerNormalization of f16 leaves out stash_type, whose default computes in f32: of
# numbers around 300 the square is infinite, and the result 0.
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
from onnx import helper
from onnx.reference import ReferenceEvaluator

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)


def run(op, *arrays, **attributes):
    """Return the result of a node in onnxruntime and in onnx.reference."""
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    graph = helper.make_graph(
        [helper.make_node(op, [*given], ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(n, kind, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("y", kind, arrays[0].shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0].ravel(), ReferenceEvaluator(model).run(None, given)[0].ravel()


channels = np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1, 1)
numbers = np.array([-3, 4], np.float32)
halves = np.array([300, -300, 300, -299], np.float16)
found = {
    "LRN of channels 1 to 5": run("LRN", channels, size=3, alpha=1.0, beta=0.5),
    "LpNormalization of -3, 4 by p=1": run("LpNormalization", numbers, p=1),
    "LayerNormalization of f16 300, -300, 300, -299": run("LayerNormalization", halves, np.ones_like(halves)),
}
for name, (right, reference) in found.items():
    print(f"{name}: onnxruntime {right.round(4)} onnx.reference {reference.round(4)}")
lrn, lp, layer = found.values()
if np.allclose(lrn[0], lrn[1], atol=1e-3) or not np.array_equal(lrn[1][1:], channels.ravel()[1:]):
    sys.exit("LRN is another now")
if not np.allclose(lp[0], [-3 / 7, 4 / 7]) or not np.array_equal(lp[1], numbers):
    sys.exit("LpNormalization is another now")
if not np.allclose(layer[0], [1, -1, 1, -1], atol=0.01) or layer[1].any():
    sys.exit("LayerNormalization is another now")
PY

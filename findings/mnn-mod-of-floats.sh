#!/usr/bin/env bash
# Mod of ONNX with fmod=1, the one form that opsets 10 to 13 allow for floats, is C's fmod: the sign of the dividend.
# MNN computes Python's modulo there, the sign of the divisor: -4.3 mod 2.1 is 2.0 in place of -0.1. Integers with
# fmod=1 follow the text. An angle or a position that is wrapped by such a node is on the other side in MNN.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 MNN==3.6.1
cd "$work"
"$work/venv/bin/python" - <<'PY'
import sys

import _tools
import MNN.expr as F
import MNN.nn
import numpy as np
import onnx
import onnxruntime
from MNN import version
from onnx import helper


def run(a, b):
    """Return Mod of a and b with fmod=1 in onnxruntime and in MNN."""
    kind = helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph(
        [helper.make_node("Mod", ["a", "b"], ["y"], fmod=1)], "g",
        [helper.make_tensor_value_info(n, kind, a.shape) for n in "ab"],
        [helper.make_tensor_value_info("y", kind, a.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, "m.onnx")
    _tools.mnnconvert(["", "-f", "ONNX", "--modelFile", "m.onnx", "--MNNModel", "m.mnn", "--bizCode", "x"])
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    net = MNN.nn.load_module_from_file("m.mnn", ["a", "b"], ["y"])
    mnn_kind = F.float if a.dtype == np.float32 else F.int
    [y] = net.forward([F.const(v, list(v.shape), F.NCHW, mnn_kind) for v in (a, b)])
    return session.run(None, {"a": a, "b": b})[0], y.read().copy()


x, z = np.array([-4.3, 7.2, 5, -8], np.float32), np.array([2.1, -3.4, 8, 5], np.float32)
ort, mnn = run(x, z)
i, j = np.array([-4, 7, 5, -8], np.int32), np.array([3, -3, 8, 5], np.int32)
ort_int, mnn_int = run(i, j)
print("MNN", version(), "onnxruntime", onnxruntime.__version__)
print("x               ", x, "\ndivisors        ", z)
print("C's fmod        ", np.fmod(x, z), "\nPython's modulo ", np.mod(x, z))
print("onnxruntime     ", ort, "\nMNN             ", mnn)
print("of integers: onnxruntime", ort_int, "MNN", mnn_int)
if not np.allclose(ort, np.fmod(x, z)) or not np.array_equal(ort_int, np.fmod(i, j)):
    sys.exit("onnxruntime is another now")
if not np.allclose(mnn, np.mod(x, z), atol=1e-5) or not np.array_equal(mnn_int, np.fmod(i, j)):
    sys.exit("MNN is another now")
PY

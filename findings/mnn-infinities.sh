#!/usr/bin/env bash
# MNN's vector code for CPUs has its own arithmetic of infinities and NaN: the Relu of minus infinity is NaN, and of NaN
# it is 0; exp of infinity, and of 100, is 6e37; exp of NaN is 1.6e-38; softplus of 100 is 87. onnxruntime follows
# IEEE 754. A mask of minus infinity that meets a Relu puts NaN into MNN's results, and a NaN is lost on its way out.
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
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)


def run(kind, x):
    """Return a unary operator of x in onnxruntime and in MNN."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n in "xy"]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, "m.onnx")
    _tools.mnnconvert(["", "-f", "ONNX", "--modelFile", "m.onnx", "--MNNModel", "m.mnn", "--bizCode", "x"])
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    net = MNN.nn.load_module_from_file("m.mnn", ["x"], ["y"])
    [y] = net.forward([F.const(x, list(x.shape), F.NCHW, F.float)])
    return session.run(None, {"x": x})[0][:5], y.read()[:5].copy()


x = np.array([-np.inf, np.nan, np.inf, 100, -1] * 4, np.float32)
found = {kind: run(kind, x) for kind in ("Relu", "Exp", "Softplus")}
print("MNN", version(), "onnxruntime", onnxruntime.__version__)
print("x       ", x[:5])
for kind, (ort, mnn) in found.items():
    print(f"{kind:9} onnxruntime", ort, " MNN", mnn)
relu, exp, softplus = (found[kind][1] for kind in found)
if not (np.isnan(relu[0]) and relu[1] == 0):
    sys.exit("Relu is another now")
if not (exp[1] < 1 and exp[2] < 1e38 and exp[3] < 1e38 and 86 < softplus[3] < 88):
    sys.exit("exponentials are others now")
if np.isnan(found["Relu"][0][0]) or not np.isnan(found["Exp"][0][1]) or found["Softplus"][0][3] != 100:
    sys.exit("onnxruntime is another now")
PY

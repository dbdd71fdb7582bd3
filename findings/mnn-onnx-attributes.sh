#!/usr/bin/env bash
# MNN's converter reads a node of ONNX and leaves out parts that change its result, without a word: select_last_index
# of ArgMax; reduction of ScatterND, so that x + u is u, and min of ScatterElements, which has add and mul; the axes of
# ReduceL1 where they are an input, as from opset 18 on; and its Shrink compares a negative number with the
# wrong bound. onnxruntime follows each. ReduceMean with the same axes is right.
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
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)


def run(node, x, constants, kind=TensorProto.FLOAT):
    """Return the first result of a node in onnxruntime and in MNN."""
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", kind, [f"d{i}" for i in range(x.ndim)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, "m.onnx")
    _tools.mnnconvert(["", "-f", "ONNX", "--modelFile", "m.onnx", "--MNNModel", "m.mnn", "--bizCode", "x"])
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    net = MNN.nn.load_module_from_file("m.mnn", ["x"], ["y"])
    [y] = net.forward([F.const(x, list(x.shape), F.NCHW, F.float)])
    y = F.convert(y, F.NCHW) if x.ndim == 4 else y
    return session.run(None, {"x": x})[0].tolist(), y.read().tolist()


def array(*numbers, kind=np.float32):
    return np.array(numbers, kind)


long = {"kind": np.int64}
rows = array([2, 2], [3, 10])
cases = {
    "ArgMax, select_last_index 0": (helper.make_node("ArgMax", ["x"], ["y"], axis=1), rows, {}, TensorProto.INT64),
    "ArgMax, select_last_index 1": (
        helper.make_node("ArgMax", ["x"], ["y"], axis=1, select_last_index=1), rows, {}, TensorProto.INT64,
    ),
    "ScatterND, reduction add": (
        helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="add"), array(1, 2, 3),
        {"i": array([0], [2], **long), "u": array(10, 20)},
    ),
    "ScatterND, reduction mul": (
        helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="mul"), array(1, 2, 3),
        {"i": array([0], [2], **long), "u": array(10, 20)},
    ),
    "ScatterElements, reduction mul": (
        helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="mul"), array(1, 2, 3),
        {"i": array(0, 2, **long), "u": array(10, 20)},
    ),
    "ScatterElements, reduction min": (
        helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="min"), array(1, 2, 3),
        {"i": array(0, 2, **long), "u": array(10, 20)},
    ),
    "Shrink, lambd 1.5, bias 1.5": (
        helper.make_node("Shrink", ["x"], ["y"], lambd=1.5, bias=1.5), array(-2, -1, 1, 2), {},
    ),
    "ReduceMean, axes 1": (helper.make_node("ReduceMean", ["x", "axes"], ["y"]), rows, {"axes": array(1, **long)}),
    "ReduceL1, axes 1": (helper.make_node("ReduceL1", ["x", "axes"], ["y"]), rows, {"axes": array(1, **long)}),
}  # fmt: skip
found = {name: run(*case) for name, case in cases.items()}
print("MNN", version(), "onnxruntime", onnxruntime.__version__)
for name, (ort, mnn) in found.items():
    print(f"{name}: onnxruntime {ort} MNN {mnn}")
same = [name for name, (ort, mnn) in found.items() if ort == mnn]
if same != ["ArgMax, select_last_index 0", "ScatterElements, reduction mul", "ReduceMean, axes 1"]:
    sys.exit("other attributes are followed now")
PY

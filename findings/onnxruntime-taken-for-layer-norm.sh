#!/usr/bin/env bash
# onnxruntime, with the optimisations that are on by default, takes for LayerNormalization what is none: it looks
# for the operators of one, and neither at the exponent of the Pow (4 is taken for 2), nor at the order of the
# operands of Sub (mean - x) and of Div (deviation / difference).
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
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", onnxruntime.__version__)
onnxruntime.set_default_logger_severity(4)
node = helper.make_node
x = np.array([[0, 1, 2, 9]], np.float32)


def run(sub, power, div):
    """Return the results of a norm without optimisations and with those of the default."""
    nodes = [
        node("ReduceMean", ["x", "last"], ["mean"]),
        node("Sub", sub, ["d"]),
        node("Pow", ["d", "power"], ["p"]),
        node("ReduceMean", ["p", "last"], ["m"]),
        node("Add", ["m", "epsilon"], ["e"]),
        node("Sqrt", ["e"], ["s"]),
        node("Div", div, ["n"]),
        node("Mul", ["n", "scale"], ["k"]),
        node("Add", ["k", "bias"], ["y"]),
    ]
    constants = {
        "last": np.array([-1]),
        "power": np.array(power, np.float32),
        "epsilon": np.array(1e-5, np.float32),
        "scale": np.ones(4, np.float32),
        "bias": np.zeros(4, np.float32),
    }
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    found = []
    levels = onnxruntime.GraphOptimizationLevel
    for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found.append(session.run(None, {"x": x})[0])
    return found


d = x.astype(np.float64) - x.mean(dtype=np.float64)
two, four = (np.sqrt((d**n).mean() + 1e-5) for n in (2, 4))
cases = [
    ("d / sqrt(mean(d ** 4))", d / four, (["x", "mean"], 4, ["d", "s"])),
    ("d of mean - x         ", -d / two, (["mean", "x"], 2, ["d", "s"])),
    ("sqrt(mean(d ** 2)) / d", two / d, (["x", "mean"], 2, ["s", "d"])),
]
for name, expected, parts in cases:
    plain, default = run(*parts)
    print(name, "in f64", expected.round(3), "without optimisations", plain.round(3), end=" ")
    print("by default", default.round(3))
    if not np.allclose(plain, expected, atol=1e-3) or not np.allclose(default, d / two, atol=1e-3):
        sys.exit("this is no LayerNormalization now")
PY

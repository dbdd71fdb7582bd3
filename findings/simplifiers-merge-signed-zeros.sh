#!/usr/bin/env bash
# onnxslim and onnxoptimizer take the constants 0.0 and -0.0 for one, and onnxruntime, by default, takes
# attributes of 0.0 and -0.0 for one: 1 / -0.0 becomes infinity in place of minus infinity.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxslim==0.1.98 onnxoptimizer==0.4.2
"$work/venv/bin/python" - <<'PY'
import copy
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime
import onnxslim
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
print(*(f"{p} {version(p)}" for p in ("onnxruntime", "onnxslim", "onnxoptimizer")))
levels = onnxruntime.GraphOptimizationLevel


def model(nodes, constants=()):
    graph = helper.make_graph(
        [*nodes, helper.make_node("Concat", ["p", "q"], ["y"], axis=0)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        list(constants),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made)
    return made


def run(made, x, level=levels.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": np.array([x], np.float32)})[0]


quotients = model(
    [helper.make_node("Div", ["x", n], [r]) for n, r in (("zero", "p"), ("minus", "q"))],
    [
        numpy_helper.from_array(np.array([v], np.float32), n)
        for n, v in (("zero", 0.0), ("minus", -0.0))
    ],
)
slim = onnxslim.slim(copy.deepcopy(quotients))
optimized = onnxoptimizer.optimize(quotients, onnxoptimizer.get_fuse_and_elimination_passes())
found = [run(m, 1) for m in (quotients, slim, optimized)]
print("1 / 0.0 and 1 / -0.0: as it is", found[0], "onnxslim", found[1], "onnxoptimizer", found[2])
leaky = model(
    [helper.make_node("LeakyRelu", ["x"], [r], alpha=a) for a, r in ((0.0, "p"), (-0.0, "q"))]
)
signs = [np.signbit(run(leaky, -1, level)) for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL)]
print("signs of -1 * 0.0 and -1 * -0.0: as it is", signs[0], "onnxruntime by default", signs[1])
merged = all(np.array_equal(f, [np.inf, np.inf]) for f in found[1:])
if not merged or not np.array_equal(found[0], [np.inf, -np.inf]):
    sys.exit("the constants are two now")
if signs[0].tolist() != [True, False] or len(set(signs[1].tolist())) != 1:
    sys.exit("the attributes are two now")
PY

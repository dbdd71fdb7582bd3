#!/usr/bin/env bash
# Two nodes without a seed draw numbers of their own, says the text of Bernoulli and RandomNormalLike
# ("if not specified we will auto generate one"). onnxruntime, by default, merges two Bernoulli of one input
# into one, and so does onnxscript; onnxslim and onnxoptimizer merge RandomNormalLike too: what two
# nodes draw is the same from then on.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2 onnxslim==0.1.98 onnxoptimizer==0.4.2
"$work/venv/bin/python" - <<'PY'
import copy
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime
import onnxscript.optimizer
import onnxslim
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)
print(*(f"{p} {version(p)}" for p in ("onnxruntime", "onnxscript", "onnxslim", "onnxoptimizer")))
levels = onnxruntime.GraphOptimizationLevel
x = np.full(64, 0.5, np.float32)


def model(kind):
    """Return a model whose results are two draws."""
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], [f"d{i}"]) for i in (0, 1)]
        + [helper.make_node("Neg", [f"d{i}"], [f"y{i}"]) for i in (0, 1)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, x.shape) for i in (0, 1)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made)
    return made


def differ(made, level=levels.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    a, b = session.run(None, {"x": x})
    return not np.array_equal(a, b)


found = {}
for kind in ("Bernoulli", "RandomNormalLike"):
    old = model(kind)
    found[kind] = [
        differ(old),
        differ(old, levels.ORT_ENABLE_ALL),
        differ(onnxscript.optimizer.optimize(copy.deepcopy(old))),
        differ(onnxslim.slim(copy.deepcopy(old))),
        differ(onnxoptimizer.optimize(old, onnxoptimizer.get_fuse_and_elimination_passes())),
    ]
    names = ("as it is", "onnxruntime by default", "onnxscript", "onnxslim", "onnxoptimizer")
    print(f"{kind}, two draws differ:", dict(zip(names, found[kind], strict=True)))
expected = {
    "Bernoulli": [True, False, False, False, False],
    "RandomNormalLike": [True, True, True, False, False],
}
if found != expected:
    sys.exit("other draws are merged now")
PY

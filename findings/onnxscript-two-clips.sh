#!/usr/bin/env bash
# onnxscript.optimizer, which torch.onnx.export runs by default, merges `Relu` and `Clip`, and `Max`
# and `Min` with constants, to one `Clip`. Its limits are named after the input: two such pairs on one
# tensor give a model whose second `Clip` reads `x_min_1`, which nothing makes. A limit of one element
# and two dims adds a dim to the result of `Max`, and none to that of the `Clip`: (3,) in place of (1, 3).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import onnxscript.optimizer

onnxruntime.set_default_logger_severity(4)
print("onnx", version("onnx"), "onnxscript", version("onnxscript"))
HEAD = '<ir_version: 9, opset_import: ["" : 20]>\n'
PAIRS = """g (float[3] x) => (float[3] y, float[3] z)
<float low = {-1}, float six = {6}, float one = {1}> {
  a = Clip(x, low, six)
  y = Relu(a)
  b = Clip(x, low, one)
  z = Relu(b)
}"""
DIMS = """g (float[3] x) => (float[1, 3] y) <float[1, 1] low = {0}, float[1, 1] six = {6}> {
  a = Max(x, low)
  y = Min(a, six)
}"""
X = np.array([-2, 0.5, 9], np.float32)


def run(model):
    """Return the results of a model without onnxruntime's own rewrites."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": X})


def parsed(text):
    model = onnx.parser.parse_model(HEAD + text)
    onnx.checker.check_model(model, full_check=True)
    return model


print("two pairs, as they are:", [r.tolist() for r in run(parsed(PAIRS))])
made = onnxscript.optimizer.optimize(parsed(PAIRS))
print("nodes:", [(n.op_type, list(n.input)) for n in made.graph.node])
print("initializers:", [i.name for i in made.graph.initializer])
try:
    print("optimized:", [r.tolist() for r in run(made)])
    sys.exit("two pairs are right now")
except Exception as e:
    print("optimized:", str(e)[:130])
[before] = run(parsed(DIMS))
[after] = run(onnxscript.optimizer.optimize(parsed(DIMS)))
print("a limit of two dims:", before.shape, "optimized:", after.shape)
if before.shape != (1, 3) or after.shape != (3,):
    sys.exit("dims are kept now")
PY

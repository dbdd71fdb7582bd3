#!/usr/bin/env bash
# onnxruntime's CDist (com.microsoft, what sklearn-onnx writes for nearest neighbours and Gaussian
# processes) computes x.x + y.y - 2 x.y in f32. For points around 1000 that lie 2 apart the first
# digits cancel, and distances are a quarter off; scipy squares differences, and is exact. So
# neighbours change places. Here float64 is the oracle of CDist for points far from 0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 \
  onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
draws = np.random.default_rng(0)
a, b = (1000 + draws.standard_normal((n, 5)).astype(np.float32) for n in (4, 3))
node = helper.make_node("CDist", ["a", "b"], ["y"], domain="com.microsoft", metric="euclidean")
given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in (("a", a), ("b", b))]
result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3])]
opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
graph = helper.make_graph([node], "g", given, result)
model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)


def worst(shift):
    x, y = a - np.float32(shift), b - np.float32(shift)
    [got] = session.run(None, {"a": x, "b": y})
    want = np.sqrt(((x[:, None].astype(np.float64) - y[None]) ** 2).sum(-1))
    return float(np.abs(got / want - 1).max())


far, near = worst(0), worst(1000)
print(f"relative error of the worst distance: {far:.2g} around 1000, {near:.2g} around 0")
sys.exit(0 if far > 1e-2 and near < 1e-5 else 1)
PY

#!/usr/bin/env bash
# ONNX Attention with is_causal and a past (a cache of keys): query i sees the whole past and the new keys up to its
# own, says the text of opset 24 ("offset = past_sequence_length"). tract and tinygrad lay the triangle at the top left:
# query i sees keys 0 to i of past and new ones together. A model that makes one token at a time attends to the first
# token of its text alone. Shapes and the cache that is given back are right, and a whole text in one run is too.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import TensorProto, helper
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "tract", "tinygrad")))
names = ["q", "k", "v", "past_k", "past_v"]
# scores are all equal: a result is the mean of the values that a query sees, which are 0 and 1 (past), 2 and 3 (new)
keys = np.zeros((1, 1, 2, 1), np.float32)
given = dict.fromkeys(names, keys)
given["past_v"], given["v"] = keys + [[0], [1]], keys + [[2], [3]]
given = {name: values.astype(np.float32) for name, values in given.items()}
graph = helper.make_graph(
    [helper.make_node("Attention", ["q", "k", "v", "", "past_k", "past_v"], ["y", "keys", "values"], is_causal=1)],
    "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 1, 2, 1]) for n in names],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 2, 1])]
    + [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 1, 4, 1]) for n in ("keys", "values")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
found = {"onnxruntime": session.run(None, given)[0]}
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    onnx.save(model, file.name)
    read = tract.onnx().load(file.name)
    for i in range(5):
        read.set_input_fact(i, "1,1,2,1,f32")
    found["tract"] = read.into_model().into_runnable().run([given[n] for n in names])[0].to_numpy()
    found["tinygrad"] = OnnxRunner(file.name)({n: Tensor(a) for n, a in given.items()})["y"].numpy()
print("by the text ", "[1.  1.5]: the means of 0, 1, 2 and of 0, 1, 2, 3")
for name, y in found.items():
    print(f"{name:12}", y.ravel())
    expected = [1, 1.5] if name == "onnxruntime" else [0, 0.5]
    if not np.allclose(y.ravel(), expected):
        sys.exit("the past is seen otherwise now")
PY

#!/usr/bin/env bash
# ONNX Attention with fewer heads of keys than of queries (grouped queries): heads of queries that stand side by side
# share one, so of 4 and 2 the heads 0 and 1 use the first, 2 and 3 the second, as the operator's function repeats each
# head in place. tinygrad's OnnxRunner repeats the list of heads: 0 and 2 use the first. The shape is right, and with
# as many heads of each kind the numbers are too. onnxruntime and onnx.reference follow the text.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - "$work/model.onnx" <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tinygrad.nn.onnx import OnnxRunner

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "tinygrad")))


def run(heads, kv_heads):
    """Return each head's result where all keys are equal and the values of head h are h."""
    q = np.zeros((1, heads, 1, 4), np.float32)
    k = np.zeros((1, kv_heads, 3, 4), np.float32)
    v = np.zeros_like(k) + np.arange(kv_heads, dtype=np.float32).reshape(1, -1, 1, 1)
    feeds = {"q": q, "k": k, "v": v}
    graph = helper.make_graph(
        [helper.make_node("Attention", ["q", "k", "v"], ["y"])], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, q.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, sys.argv[1])
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    found = {
        "onnxruntime": session.run(None, feeds)[0],
        "onnx.reference": ReferenceEvaluator(model).run(None, feeds)[0],
        "tinygrad": OnnxRunner(sys.argv[1])(feeds)["y"].numpy(),
    }
    return {name: y[0, :, 0, 0].tolist() for name, y in found.items()}


grouped, plain = run(4, 2), run(2, 2)
print("values of the head of keys that each of 4 heads of queries uses:")
for name, heads in grouped.items():
    print(f"  {name:15}", heads, " 2 heads of each:", plain[name])
if grouped["onnxruntime"] != [0, 0, 1, 1] or grouped["onnx.reference"] != [0, 0, 1, 1]:
    sys.exit("the other two are others now")
if grouped["tinygrad"] != [0, 1, 0, 1] or plain["tinygrad"] != [0, 1]:
    sys.exit("tinygrad shares heads otherwise now")
PY

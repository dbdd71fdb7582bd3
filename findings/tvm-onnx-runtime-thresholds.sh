#!/usr/bin/env bash
# TVM's reader of ONNX takes the limits of NonMaxSuppression from constants alone. A model whose number of boxes or
# thresholds are inputs, as the text allows for each of them, is compiled with 0, 0.5 and 0 in their places, without
# a word: a number of 0 selects no box. With the same limits as constants it selects the right ones.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 apache-tvm==0.27.0.post1
"$work/venv/bin/python" -W ignore - 2>&1 <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "apache-tvm")))
boxes = np.array([[[0, 0, 1, 1], [0, 2, 1, 3], [0, 4, 1, 5]]], np.float32)
scores = np.array([[[0.9, 0.2, 0.7]]], np.float32)
limits = {
    "most": np.array([3]), "overlap": np.array([0.5], np.float32), "least": np.array([0.5], np.float32),
}  # fmt: skip


def run(constant):
    feeds = {"boxes": boxes, "scores": scores} | ({} if constant else limits)
    graph = helper.make_graph(
        [helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])], "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feeds.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [None, 3])],
        [numpy_helper.from_array(a, n) for n, a in limits.items()] if constant else [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    module = from_onnx(model, keep_params_in_input=False)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    found = machine["main"](*(tvm.runtime.tensor(a) for a in feeds.values()))
    return [v.tolist() for v in (session.run(None, feeds)[0][:, 2], found.numpy()[:, 2])]


found = {"constants": run(True), "inputs": run(False)}
for name, (expected, selected) in found.items():
    print(f"limits are {name}: boxes that onnxruntime selects {expected}, TVM {selected}")
if found["constants"][0] != [0, 2] or found["inputs"] != [[0, 2], []]:
    sys.exit("the limits are read now")
PY

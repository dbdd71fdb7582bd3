#!/usr/bin/env bash
# TVM's reader of ONNX leaves attributes out without a word. IsInf with detect_negative=0 asks for +inf alone, and
# finds -inf too. ConvTranspose with output_shape=[6] gives 5 elements. Both attributes are as old as their operators,
# in opset 10 and 1, and onnxruntime follows them.
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


def run(node, x, kind, dims, **constants):
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", kind, dims)],
        [numpy_helper.from_array(c, name) for name, c in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    module = from_onnx(model, keep_params_in_input=False)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    found = machine["main"](tvm.runtime.tensor(x)).numpy()
    return session.run(None, {"x": x})[0].ravel().tolist(), found.ravel().tolist()


numbers = np.array([1, np.inf, -np.inf], np.float32)
ones = np.ones((1, 1, 2), np.float32)
rows = {
    "IsInf, detect_negative=0, of 1, inf, -inf": run(
        helper.make_node("IsInf", ["x"], ["y"], detect_negative=0), numbers, TensorProto.BOOL, [3]
    ),
    "IsInf, detect_positive=0": run(
        helper.make_node("IsInf", ["x"], ["y"], detect_positive=0), numbers, TensorProto.BOOL, [3]
    ),
    "ConvTranspose, output_shape=[6]": run(
        helper.make_node("ConvTranspose", ["x", "w"], ["y"], output_shape=[6], strides=[2]),
        ones, TensorProto.FLOAT, [1, 1, 6], w=np.ones((1, 1, 3), np.float32),
    ),
}  # fmt: skip
for name, (expected, found) in rows.items():
    print(f"{name}:\n  onnxruntime {expected}\n  TVM         {found}")
wrong = [expected != found for expected, found in rows.values()]
if wrong != [True, True, True] or len(rows["ConvTranspose, output_shape=[6]"][1]) != 5:
    sys.exit("TVM looks at these attributes now")
PY

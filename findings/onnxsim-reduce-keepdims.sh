#!/usr/bin/env bash
# onnxsim merges a reduction of a reduction into one, and gives it the second one's keepdims. Where one keeps its dim
# and the other does not, the result has another rank: (3, 1) becomes (3,), beside which a vector of 3 is broadcast
# otherwise, and a matrix of sums becomes its diagonal. simplify returns True, as it compares nothing unless check_n is
# given. With equal keepdims it is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxsim==0.8.1
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import onnxsim
from onnx import TensorProto, helper, numpy_helper

print("onnxsim", version("onnxsim"), "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
given = {"x": np.arange(36, dtype=np.float32).reshape(3, 3, 4), "z": np.array([100, 200, 300], np.float32)}


def run(first, second, dims):
    """Return a mean of means plus z, before and after onnxsim, and what simplify says."""
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["x", "a"], ["t"], keepdims=first),
            helper.make_node("ReduceMean", ["t", "b"], ["u"], keepdims=second),
            helper.make_node("Add", ["u", "z"], ["y"]),
        ],
        "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(np.array([v]), n) for n, v in (("a", 1), ("b", -1))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    simple, said = onnxsim.simplify(model)
    both = [
        onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)[0]
        for m in (model, simple)
    ]
    return both, said


onnxruntime.set_default_logger_severity(3)
for first, second, dims, expected in (
    (0, 0, [3], [(3,), (3,)]),
    (1, 0, [3, 3], [(3, 3), (3,)]),
    (0, 1, [3, 3], [(3, 3), (3, 1, 3)]),
):
    both, said = run(first, second, dims)
    print(f"keepdims {first} and {second}: before {both[0].tolist()} after {both[1].tolist()}, simplify says {said}")
    if [y.shape for y in both] != expected or not said:
        sys.exit("merged otherwise now")
PY

#!/usr/bin/env bash
# fold_constants of onnx-graphsurgeon, and onnxoptimizer, leave out `start` and `end` of a Shape (opset 15):
# the dims from 1 on become all dims, and the first of them is 2 in place of 3.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnx-graphsurgeon==0.6.1 onnxoptimizer==0.4.2
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnx_graphsurgeon
import onnxoptimizer
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
print("onnx-graphsurgeon", version("onnx-graphsurgeon"), "onnxoptimizer", version("onnxoptimizer"))
x = np.zeros((2, 3, 4), np.float32)
first = [numpy_helper.from_array(np.array([v]), n) for n, v in (("zero", 0), ("one", 1))]


def model(nodes, size, constants=()):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [size])], list(constants),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


def run(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def surgeon(made):
    graph = onnx_graphsurgeon.import_onnx(made)
    return onnx_graphsurgeon.export_onnx(graph.fold_constants().cleanup())


dims = model([helper.make_node("Shape", ["x"], ["y"], start=1)], 2)
one = model(
    [
        helper.make_node("Shape", ["x"], ["s"], start=1),
        helper.make_node("Slice", ["s", "zero", "one"], ["y"]),
    ],
    1, first,
)
found = run(dims), run(surgeon(dims)), run(one), run(surgeon(one)), run(onnxoptimizer.optimize(one))
print("dims from 1 on:          ", found[0], "folded by onnx-graphsurgeon:", found[1])
print("the first of these dims: ", found[2], "folded by onnx-graphsurgeon:", found[3], end=" ")
print("by onnxoptimizer:", found[4])
if [f.tolist() for f in found] != [[3, 4], [2, 3, 4], [3], [2], [2]]:
    sys.exit("start is looked at now")
PY

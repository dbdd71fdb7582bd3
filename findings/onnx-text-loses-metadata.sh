#!/usr/bin/env bash
# onnx.printer.to_text writes a model as text, and onnx.parser.parse_model reads it. On the way metadata_props of nodes,
# graphs, values and initializers are lost, with documentation strings of nodes and values: torch.onnx.export notes the
# source of each node there. Names of nodes and a model's own metadata_props come back, so a quick look finds nothing
# missing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

print("onnx", onnx.__version__)
node = helper.make_node("Add", ["x", "c"], ["y"], name="sum", doc_string="the sum")
ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
graph = helper.make_graph(
    [node], "g", ends[:1], ends[1:], [numpy_helper.from_array(np.ones(2, np.float32), "c")]
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def parts(m):
    g = m.graph
    return {"model": m, "graph": g, "node": g.node[0], "input": g.input[0], "initializer": g.initializer[0]}


for part in parts(model).values():
    part.metadata_props.add(key="source", value="model.py:7")
    part.doc_string = "text"
onnx.checker.check_model(model, full_check=True)
read = onnx.parser.parse_model(onnx.printer.to_text(model))
found = {
    name: (bool(part.metadata_props), bool(part.doc_string)) for name, part in parts(read).items()
}
for name, (metadata, text) in found.items():
    print(f"{name:12} metadata_props read back: {metadata!s:6} doc_string: {text}")
print("name of the node:", read.graph.node[0].name)
if found["model"] != (True, True) or read.graph.node[0].name != "sum":
    sys.exit("the model's own are lost now")
if found["node"] != (False, False) or found["graph"][0]:
    sys.exit("metadata of nodes or graphs is kept now")
PY

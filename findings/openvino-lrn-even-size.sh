#!/usr/bin/env bash
# LRN of ONNX with an even size: channel c is divided by the squares of c - floor((size - 1) / 2) to c + ceil((size - 1)
# / 2), for a size of 4 one channel before and two behind. OpenVINO takes one before and one behind, three channels, and
# divides by four. tract follows the text, and onnxruntime refuses even sizes. Odd sizes are right everywhere.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 openvino==2026.4.1 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import openvino
import tract
from onnx import TensorProto, helper

print(*(f"{p} {version(p)}" for p in ("onnx", "openvino", "tract")))
print(onnx.defs.get_schema("LRN", 13).doc.split("its region is")[1].split("\n\n")[0].strip())
core = openvino.Core()
x = np.arange(1, 9, dtype=np.float32).reshape(1, 8, 1, 1)


def run(size):
    """Return LRN of eight channels in OpenVINO and in tract."""
    graph = helper.make_graph(
        [helper.make_node("LRN", ["x"], ["y"], size=size, alpha=1.0, beta=1.0, bias=1.0)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    read = core.read_model(model.SerializeToString())
    first = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0].ravel()
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        net = tract.onnx().load(file.name)
        net.set_input_fact(0, "1,8,1,1,f32")
        return first, net.into_model().into_runnable().run([x])[0].to_numpy().ravel()


def formula(size, before, behind):
    rows = x.ravel().astype(np.float64)
    sums = [(rows[max(0, c - before):c + behind + 1] ** 2).sum() for c in range(8)]
    return rows / (1 + np.array(sums) / size)


for size in (3, 4):
    text = formula(size, (size - 1) // 2, size // 2)
    fewer = formula(size, (size - 1) // 2, (size - 1) // 2)
    found = run(size)
    shown = (values[:4].round(4) for values in (text, found[1], found[0]))
    print("size {}: by the text {} tract {} OpenVINO {}".format(size, *shown))
    if not np.allclose(found[1], text, atol=1e-5) or not np.allclose(found[0], fewer, atol=1e-5):
        sys.exit("the region is another now")
PY

#!/usr/bin/env bash
# An LSTM of ONNX may have peepholes, input P: weights by which a gate sees the state of the cell. IREE's way from ONNX
# takes the node with its P and computes an LSTM without: the results are others, and nothing says so. With P of zeros,
# and of an LSTM without P, IREE and onnxruntime agree.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler as compiler
import iree.runtime as runtime
import numpy as np
import onnx
import onnxruntime
from iree.compiler import ir
from iree.compiler.extras import onnx_importer
from onnx import TensorProto, helper, numpy_helper

print("iree", version("iree-base-compiler"), "onnxruntime", onnxruntime.__version__)


def run(node, x, dims, constants=()):
    """Return the first result of a node in onnxruntime and in IREE on a CPU."""
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(value, name) for name, value in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model))
    module = info.create_module(context=ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    flags = ["--iree-llvmcpu-target-cpu=generic"]
    code = compiler.compile_str(str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=flags)
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
    return session.run(None, {"x": x})[0], np.asarray(context.modules.module["g"](x))


size, hidden = 2, 3
random = np.random.default_rng(0)
x = random.standard_normal((4, 1, size)).astype(np.float32)
weights = random.standard_normal((1, 4 * hidden, size)).astype(np.float32)
recurrent = random.standard_normal((1, 4 * hidden, hidden)).astype(np.float32)
base = [
    ("W", weights), ("R", recurrent), ("B", np.zeros((1, 8 * hidden), np.float32)),
    ("h", np.zeros((1, 1, hidden), np.float32)), ("c", np.zeros((1, 1, hidden), np.float32)),
]  # fmt: skip
found = {}
for name, fill in (("no P", None), ("P of 0", 0), ("P of 3", 3)):
    given = ["x", "W", "R", "B", "", "h", "c"] + (["P"] if fill is not None else [])
    peepholes = [("P", np.full((1, 3 * hidden), fill, np.float32))] if fill is not None else []
    node = helper.make_node("LSTM", given, ["Y"], hidden_size=hidden)
    found[name] = ort, iree = run(node, x, [4, 1, 1, hidden], base + peepholes)
    print(f"{name:7} onnxruntime {ort[-1].ravel()}  IREE {iree[-1].ravel()}")
if not all(np.allclose(*found[name], atol=1e-4) for name in ("no P", "P of 0")):
    sys.exit("an LSTM without peepholes is wrong now")
if not np.allclose(found["P of 3"][1], found["no P"][0], atol=1e-4):
    sys.exit("P is read now")
if np.allclose(found["P of 3"][0], found["no P"][0], atol=1e-3):
    sys.exit("onnxruntime leaves P out now")
PY

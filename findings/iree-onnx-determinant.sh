#!/usr/bin/env bash
# IREE's way from ONNX eliminates columns of a Det without exchanging rows: a 0 on the diagonal is divided by. The
# determinant of a swap of two axes is NaN in place of -1. onnxruntime and numpy exchange rows.
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


matrices = {
    "a plain one": [[4, 1], [2, 3]],
    "a swap": [[0, 1], [1, 0]],
    "0 first": [[0, 1], [2, 3]],
}
node = helper.make_node("Det", ["x"], ["y"])
found = {}
for name, rows in matrices.items():
    x = np.array(rows, np.float32)
    ort, iree = (float(v) for v in run(node, x, []))
    found[name] = ort, iree
    print(f"{name:12} {rows!s:16} numpy {np.linalg.det(x.astype(np.float64)):.6} onnxruntime {ort:.6} IREE {iree:.6}")
if not np.allclose(*found["a plain one"]):
    sys.exit("a plain determinant is wrong now")
if not all(np.isnan(found[name][1]) for name in ("a swap", "0 first")):
    sys.exit("rows are exchanged now")
PY

#!/usr/bin/env bash
# Operators that IREE's way from ONNX writes by other formulas than the text's, on a CPU: ReduceLogSumExp of 1000 and
# 1000 is infinite, LpNormalization of zeros is NaN where the text has 0, Sign of NaN is 0, Mod of 5 by infinity is NaN,
# and GridSample's nearest rounds halves up where the text rounds to even, so that an image enlarged twice is shifted.
# onnxruntime has the text's results.
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
from onnx import TensorProto, helper

print("iree", version("iree-base-compiler"), "onnxruntime", onnxruntime.__version__)


def run(op, dims, *arrays, **attributes):
    """Return the result of a node in onnxruntime and in IREE on a CPU."""
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    graph = helper.make_graph(
        [helper.make_node(op, [*given], ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model))
    module = info.create_module(context=ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    flags = ["--iree-llvmcpu-target-cpu=generic"]
    code = compiler.compile_str(str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=flags)
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
    found = np.asarray(context.modules.module["g"](*given.values()))
    return session.run(None, given)[0].ravel().tolist(), found.ravel().tolist()


def f32(*numbers):
    return np.array(numbers, np.float32)


row = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 1, 4)
grid = np.zeros((1, 1, 3, 2), np.float32)
grid[..., 0] = -0.5, 0, 0.5  # elements 0.5, 1.5 and 2.5
nan, inf = float("nan"), float("inf")
cases = {
    "ReduceLogSumExp of 1000, 1000": (run("ReduceLogSumExp", [1], f32(1000, 1000)), [1000.6931], [inf]),
    "LpNormalization of 0, 0": (run("LpNormalization", [2], f32(0, 0), p=2), [0, 0], [nan, nan]),
    "Sign of NaN": (run("Sign", [1], f32(nan)), [nan], [0]),
    "Mod of 5 by infinity": (run("Mod", [1], f32(5), f32(inf), fmod=1), [5], [nan]),
    "GridSample, nearest, at halves": (
        run("GridSample", [1, 1, 1, 3], row, grid, mode="nearest"), [1, 3, 3], [2, 3, 4]
    ),
}
changed = []
for name, (found, right, other) in cases.items():
    print(f"{name:31} onnxruntime {found[0]} IREE {found[1]}")
    if not all(np.allclose(a, b, atol=1e-3, equal_nan=True) for a, b in zip(found, (right, other), strict=True)):
        changed.append(name)
if changed:
    sys.exit(f"computed otherwise now: {changed}")
PY

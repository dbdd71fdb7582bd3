#!/usr/bin/env bash
# IREE's way from ONNX takes unsigned integers for signed ones in most operators: of uint8 200 and 3 the largest is 3
# for MaxPool and TopK, 200 / 3 is 238, and 200.0 cast to uint8 is 127. uint32 from 2**31 on divides alike. Cast from
# uint8, DequantizeLinear, Less and ArgMax are right, so that a quantized model runs, and pools or clips its activations
# wrongly. onnxruntime has 200, 66 and 200.
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
from onnx import helper, numpy_helper

print("iree", version("iree-base-compiler"), "onnxruntime", onnxruntime.__version__)


def run(op, *arrays, kind=None, outputs=1, constants=(), **attributes):
    """Return the first result of a node in onnxruntime and in IREE on a CPU."""
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind or arrays[0].dtype))
    graph = helper.make_graph(
        [helper.make_node(op, [*given, *(f"c{i}" for i in range(len(constants)))], ["y", "z"][:outputs], **attributes)],
        "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
              for n, a in given.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    right = session.run(None, given)[0]
    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    flags = ["--iree-llvmcpu-target-cpu=generic"]
    code = compiler.compile_str(str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=flags)
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
    found = np.asarray(context.modules.module["g"](*given.values()))
    return right.ravel().tolist(), found.view(right.dtype).ravel().tolist()  # the same bits, as unsigned numbers


u8 = lambda *values: np.array(values, np.uint8)  # noqa: E731
u32 = lambda *values: np.array(values, np.uint32)  # noqa: E731
cases = {
    "MaxPool of 200, 3": (run("MaxPool", u8(200, 3).reshape(1, 1, 2), kernel_shape=[2]), [200], [3]),
    "TopK of 200, 3": (run("TopK", u8(200, 3), outputs=2, constants=(np.array([1]),)), [200], [3]),
    "Div of 200 by 3": (run("Div", u8(200), u8(3)), [66], [238]),
    "Mod of 200 by 3": (run("Mod", u8(200), u8(3)), [2], [1]),
    "Cast of 200.0, 3.0, 255.0 to uint8": (
        run("Cast", np.array([200, 3, 255], np.float32), kind=np.uint8, to=2), [200, 3, 255], None
    ),
    "Div of uint32 2147483653 by 5": (run("Div", u32(2**31 + 5), u32(5)), [429496730], [2**32 - 429496728]),
    "Cast of uint8 200 to f32": (run("Cast", u8(200), kind=np.float32, to=1), [200], [200]),
    "Less of 200 and 3": (run("Less", u8(200), u8(3), kind=bool), [False], [False]),
}
changed = []
for name, (found, right, other) in cases.items():
    print(f"{name:35} onnxruntime {found[0]} IREE {found[1]}")
    if found[0] != right or found[1] == right if other is None else found != (right, other):
        changed.append(name)
if changed:
    sys.exit(f"computed otherwise now: {changed}")
PY

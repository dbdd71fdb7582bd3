#!/usr/bin/env bash
# IREE for x86-64, with the target CPU that iree-compile takes by default (generic), makes 0 of every result of f16
# below 6.1e-5. IEEE 754 has 1,023 more numbers there, down to 6e-8, and numpy, XLA and onnxruntime keep them.
# Reading such numbers is right: the loss is in the conversion from f32. Probabilities and gradients are so small.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler
import iree.runtime
import numpy as np

print("iree-base-compiler", version("iree-base-compiler"))


def run(body, given, result, x):
    text = f"func.func @main(%x: tensor<4x{given}>) -> tensor<4x{result}> {{\n{body}\n"
    text += f"return %y : tensor<4x{result}>\n}}"
    code = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="none",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.module.main(x).to_host()


x = np.array([1.0, 5e-3, 5e-5, 1e-6], np.float32)
half = x.astype(np.float16)
narrow = run("%y = arith.truncf %x : tensor<4xf32> to tensor<4xf16>", "f32", "f16", x)
wide = run("%y = arith.extf %x : tensor<4xf16> to tensor<4xf32>", "f16", "f32", half)
squares = run("%y = arith.mulf %x, %x : tensor<4xf16>", "f16", "f16", half)
np.set_printoptions(precision=3)
print("numbers        ", x)
print("numpy, f16     ", half)
print("IREE, f16      ", narrow)
print("squares, numpy ", half * half)
print("squares, IREE  ", squares)
print("f16 to f32     ", wide)
lost = [int(np.count_nonzero(v)) for v in (half, narrow, half * half, squares)]
if lost != [4, 2, 2, 1] or not np.array_equal(wide, half.astype(np.float32)):
    sys.exit("small numbers of f16 are kept now")
PY

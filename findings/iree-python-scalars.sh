#!/usr/bin/env bash
# A function of IREE with a scalar argument takes Python's numbers as they lie: an int where the
# function has f32 is read as 0, and so is a float where it has i32, without an error. 2 ** 31 as an
# i32 wraps around. So `scale(x, 2)` is 0, and `scale(x, 2.0)` is right. Arrays are checked.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler as compiler
import iree.runtime as runtime
import numpy as np

CODE = """
module @m {
  func.func @scale(%x: tensor<2xf32>, %by: f32) -> tensor<2xf32> {
    %e = tensor.empty() : tensor<2xf32>
    %s = linalg.fill ins(%by : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    %y = arith.mulf %x, %s : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @more(%x: tensor<2xi32>, %by: i32) -> tensor<2xi32> {
    %e = tensor.empty() : tensor<2xi32>
    %s = linalg.fill ins(%by : i32) outs(%e : tensor<2xi32>) -> tensor<2xi32>
    %y = arith.addi %x, %s : tensor<2xi32>
    return %y : tensor<2xi32>
  }
}
"""
print("iree-base-compiler", version("iree-base-compiler"), "runtime", version("iree-base-runtime"))
code = compiler.compile_str(
    CODE, target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=generic"]
)
context = runtime.SystemContext(config=runtime.Config("local-sync"))
context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
m = context.modules.m
floats, ints = np.array([1, 10], np.float32), np.array([1, 10], np.int32)
rows = [
    ("[1, 10] * 2.0", m.scale(floats, 2.0), [2, 20]),
    ("[1, 10] * 2  ", m.scale(floats, 2), [0, 0]),
    ("[1, 10] + 2  ", m.more(ints, 2), [3, 12]),
    ("[1, 10] + 2.0", m.more(ints, 2.0), [1, 10]),
    ("[1, 10] + 2 ** 31", m.more(ints, 2**31), [1 - 2**31, 10 - 2**31]),
]
ok = True
for text, got, seen in rows:
    print(text, "=", got.to_host().tolist())
    ok = ok and got.to_host().tolist() == seen
try:
    m.scale(ints, 2.0)
    print("an array of another type is taken")
    ok = False
except ValueError as e:
    print("an array of int32 for f32:", type(e).__name__)
sys.exit(0 if ok else "numbers arrive otherwise now")
PY

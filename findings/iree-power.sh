#!/usr/bin/env bash
# IREE for CPUs: x to the power of y is exp(y log x). (-2) to the power of 3 is NaN, and so is 0 to the power
# of 0. StableHLO has pow of IEEE 754 there: -8 and 1.
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


def run(text, *arguments):
    code = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="stablehlo",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.module.main(*arguments).to_host()



TEXT = """
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {
  %0 = stablehlo.power %x, %y : tensor<6xf32>
  return %0 : tensor<6xf32>
}
"""
x = np.array([-2, -2, 0, np.nan, 1, 2], np.float32)
y = np.array([3, 2, 0, 0, np.nan, 3], np.float32)
found, expected = run(TEXT, x, y), np.power(x.astype(np.float64), y)
print("x                  ", x)
print("y                  ", y)
print("x to the power of y", expected)
print("IREE               ", found)
if not np.isnan(found[:5]).all() or found[5] != 8:
    sys.exit("powers of such numbers are right now")
PY

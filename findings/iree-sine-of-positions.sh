#!/usr/bin/env bash
# IREE for CPUs: sin(100,000) is 4e-3 off, a tenth of it, in f32: the phase is reduced by a short pi. numpy
# has 7 digits there. Rotary embeddings take the sine of the position of a token.
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
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
x = np.array([1000, 10_000, 100_000, 1_000_000], np.float32)
found, expected = run(TEXT, x), np.sin(x.astype(np.float64))
print("x             ", x)
print("sin(x), in f64", expected.round(7))
print("numpy in f32  ", np.sin(x))
print("IREE          ", found)
print("IREE is off by", abs(found - expected).round(7))
if abs(found - expected)[2] < 1e-3 or not np.allclose(np.sin(x), expected, atol=1e-6):
    sys.exit("the sine of 100,000 is right now")
PY

#!/usr/bin/env bash
# stablehlo.rng gives random numbers of a uniform or a normal distribution, says StableHLO's text. IREE's lie on a line:
# each element is the one before plus the same number, modulo the range, and a second rng of the program gives the same
# ones, as each run does. Points of two columns lie on a few lines, and a dropout drops a pattern. A mean or a
# histogram of a thousand of them is right, and shows nothing.
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
TEXT = """
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<1000xf32>, tensor<1000xf32>) {
  %n = stablehlo.constant dense<1000> : tensor<1xi64>
  %0 = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<1000xf32>
  %1 = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<1000xf32>
  return %0, %1 : tensor<1000xf32>, tensor<1000xf32>
}
"""
code = iree.compiler.compile_str(
    TEXT, target_backends=["llvm-cpu"], input_type="stablehlo",
    extra_args=["--iree-llvmcpu-target-cpu=generic"],
)
context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
first, second = (
    v.to_host() for v in context.modules.module.main(np.float32(0), np.float32(1))
)
steps = np.mod(np.diff(first.astype(np.float64)), 1)
print("eight numbers         ", first[:8])
print("steps between 1000, least and most (modulo 1)", steps.min(), steps.max())
print("the second rng gives the same numbers:", np.array_equal(first, second))
print("mean of 1000", first.mean())
print("range of such steps of numpy's numbers", np.ptp(np.mod(np.diff(np.random.default_rng(0).random(1000)), 1)))
if np.ptp(steps) > 1e-5 or not np.array_equal(first, second):
    sys.exit("the numbers are random now")
PY

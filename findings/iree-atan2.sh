#!/usr/bin/env bash
# IREE for CPUs: atan2(-0, -1) is pi in place of -pi: the angle jumps by a turn at the negative axis. Of two
# infinities it is NaN in place of pi / 4. StableHLO has atan2 of IEEE 754.
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
func.func @main(%y: tensor<5xf32>, %x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = stablehlo.atan2 %y, %x : tensor<5xf32>
  return %0 : tensor<5xf32>
}
"""
y = np.array([0, -0.0, np.inf, -np.inf, 1], np.float32)
x = np.array([-1, -1, np.inf, -np.inf, -1], np.float32)
found, expected = run(TEXT, y, x), np.arctan2(y, x)
print("y          ", y)
print("x          ", x)
print("atan2(y, x)", expected)
print("IREE       ", found)
if np.signbit(found[1]) or not np.isnan(found[2:4]).all() or abs(found[4] - expected[4]) > 1e-5:
    sys.exit("atan2 of such numbers is right now")
PY

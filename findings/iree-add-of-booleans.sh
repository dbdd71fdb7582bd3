#!/usr/bin/env bash
# StableHLO: add of booleans is "logical OR". IREE adds integers of 1 bit: true and true are false.
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
func.func @main(%x: tensor<4xi1>, %y: tensor<4xi1>) -> tensor<4xi1> {
  %0 = stablehlo.add %x, %y : tensor<4xi1>
  return %0 : tensor<4xi1>
}
"""
x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
found = run(TEXT, x, y)
print("x              ", x)
print("y              ", y)
print("x or y         ", x | y)
print("IREE, add(x, y)", found)
if not np.array_equal(found, x ^ y):
    sys.exit("true and true are true now")
PY

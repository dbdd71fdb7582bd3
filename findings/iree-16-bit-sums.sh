#!/usr/bin/env bash
# IREE for CPUs adds in the type of the result: a dot of 4,096 ones of bf16 is 2048, where 4096 is a
# number of bf16 too. StableHLO leaves the type of sums open; matrix units of GPUs add bf16 in f32, and so does numpy's
# @ of ml_dtypes. A test on a CPU fails for a model that is right. With a result of f32 the dot is exact here too.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml-dtypes==0.6.0 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler
import iree.runtime
import ml_dtypes
import numpy as np

print("iree-base-compiler", version("iree-base-compiler"))


def run_iree(kind, *arguments):
    n = 4096
    text = f"""
func.func @main(%x: tensor<1x{n}xbf16>, %y: tensor<{n}x1xbf16>) -> tensor<1x1x{kind}> {{
  %r = stablehlo.dot %x, %y : (tensor<1x{n}xbf16>, tensor<{n}x1xbf16>) -> tensor<1x1x{kind}>
  return %r : tensor<1x1x{kind}>
}}
"""
    code = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="stablehlo",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return float(context.modules.module.main(*arguments).to_host()[0, 0])


ones = np.ones((1, 4096), ml_dtypes.bfloat16)
narrow, wide = run_iree("bf16", ones, ones.T.copy()), run_iree("f32", ones, ones.T.copy())
wanted = float((ones @ ones.T)[0, 0])
print("dot of 4096 ones of bf16, result bf16: numpy", wanted, "IREE", narrow)
print("the same with a result of f32: IREE", wide)
if not narrow < 4096 == wide == wanted:
    sys.exit("sums are taken in a wider type now")
PY

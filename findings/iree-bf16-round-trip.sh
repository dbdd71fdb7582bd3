#!/usr/bin/env bash
# IREE for CPUs: arith.truncf of f32 to bf16 and arith.extf back in one kernel does not round.
# 1 + 2**-9 is no bf16 number, and comes back as it was. A model that rounds on purpose
# (fake quantisation, a cast in the source) gets numbers that it never had.
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

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.truncf %a : f32 to TYPE
    %w = arith.extf %n : TYPE to f32
    linalg.yield %w : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
x = np.array([1 + 2**-9, 1 + 2**-12, np.pi, 1e-3], np.float32)


def run(kind):
    code = iree.compiler.compile_str(
        TEXT.replace("TYPE", kind), target_backends=["llvm-cpu"], input_type="none",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.module.main(x).to_host()


np.set_printoptions(precision=9)
print("iree-base-compiler", version("iree-base-compiler"))
half, brain = run("f16"), run("bf16")
print("x             ", x)
print("through f16   ", half)
print("through bf16  ", brain)
if not np.array_equal(half, x.astype(np.float16).astype(np.float32)):
    sys.exit("f16 does not round any more")
if not np.array_equal(brain, x):
    sys.exit("bf16 rounds now")
PY

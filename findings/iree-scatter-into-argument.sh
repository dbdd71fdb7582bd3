#!/usr/bin/env bash
# IREE for CPUs: `iree_linalg_ext.scatter` whose initial tensor is an argument of the function writes
# into the memory of the argument, although tensors are values: a second result that is the argument
# itself shows the updates too.
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
func.func @main(%x: tensor<4xf32>, %at: tensor<2x1xi32>, %new: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %y = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
      ins(%new, %at : tensor<2xf32>, tensor<2x1xi32>) outs(%x : tensor<4xf32>) {
  ^bb0(%n: f32, %old: f32):
    iree_linalg_ext.yield %n : f32
  } -> tensor<4xf32>
  return %y, %x : tensor<4xf32>, tensor<4xf32>
}
"""


def run(text, *arguments):
    code = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="none",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    found = context.modules.module.main(*arguments)
    return [a.to_host() for a in (found if isinstance(found, (list, tuple)) else [found])]


print("iree-base-compiler", version("iree-base-compiler"))
at, new = np.array([[1], [3]], np.int32), np.array([7, 8], np.float32)
scattered, same = run(TEXT, np.zeros(4, np.float32), at, new)
print("scattered                 ", scattered)
print("the argument, as a result ", same)
if scattered.tolist() != [0, 7, 0, 8] or not same.any():
    sys.exit("the argument keeps its zeros now")
PY

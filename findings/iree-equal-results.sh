#!/usr/bin/env bash
# IREE for CPUs: a dispatch region gives floor(x) and two tensors that turn out to be the same zeros
# once conditions are folded. The third result of the function is then floor(x), and not the zeros:
# equal results are made one, and the wrong one is returned in the other's place.
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
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r:3 = flow.dispatch.region -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %no = arith.constant false
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %g:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>)
        outs(%e, %e, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%a: f32, %o0: f32, %o1: f32, %o2: f32):
      %floor = math.floor %a : f32
      %less = arith.cmpf olt, %a, %zero : f32
      %never = arith.andi %no, %less : i1
      %second = arith.select %never, %a, %zero : f32
      %third = arith.select %never, %floor, %zero : f32
      linalg.yield %floor, %second, %third : f32, f32, f32
    } -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    flow.return %g#0, %g#1, %g#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
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
x = np.array([-1.25, 0.5, 2.75, 4.0], np.float32)
floor, second, third = run(TEXT, x)
print("floor(x)        ", floor)
print("zeros, expected ", np.zeros(4, np.float32))
print("second result   ", second)
print("third result    ", third)
if not np.array_equal(floor, np.floor(x)) or second.any() or not third.any():
    sys.exit("the third result is right now, or the others are wrong")
PY

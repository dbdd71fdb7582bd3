#!/usr/bin/env bash
# IREE for CPUs: the sum of a filled tensor of dynamic length is one element. `linalg.fill` of twos
# into tensor<?xf32>, and a `linalg.generic` that adds them up: five twos make 4. The fill goes into
# the loop, and the loop's length is lost. The same sum of an argument that holds twos is 10.
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
func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %twos = linalg.fill ins(%two : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %o = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"]}
      ins(SUMMED : tensor<?xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
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
x = np.full(5, 2, np.float32)
argument = run(TEXT.replace("SUMMED", "%x"), x)[0]
filled = run(TEXT.replace("SUMMED", "%twos"), x)[0]
print("sum of an argument of five twos", argument)
print("sum of a fill of five twos     ", filled)
if argument != 10 or filled == 10:
    sys.exit("both are right now, or both wrong")
PY

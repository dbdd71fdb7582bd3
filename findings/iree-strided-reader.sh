#!/usr/bin/env bash
# IREE for CPUs: exp(x) is one result of a function, and the maxima of its windows of one element, stride
# 2, are another. The whole exp(x) comes out with zeros at odd positions: the loop is computed only
# where the windows read. Without the second result it is right.
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
func.func @main(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<5xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<9xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.exp %a : f32
    linalg.yield %m : f32
  } -> tensor<9xf32>
  %k = tensor.empty() : tensor<1xf32>
  %e1 = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%least : f32) outs(%e1 : tensor<5xf32>) -> tensor<5xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>,
      affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%y, %k : tensor<9xf32>, tensor<1xf32>) outs(%f : tensor<5xf32>) {
  ^bb0(%a: f32, %size: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  return %y, %z : tensor<9xf32>, tensor<5xf32>
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
x = np.arange(9, dtype=np.float32) / 4
alone = TEXT.replace("return %y, %z : tensor<9xf32>, tensor<5xf32>", "return %y : tensor<9xf32>")
alone = alone.replace("(tensor<9xf32>, tensor<5xf32>) {", "tensor<9xf32> {")
one, both = run(alone, x)[0], run(TEXT, x)[0]
print("expected           ", np.exp(x).round(3))
print("the only result    ", one.round(3))
print("beside its windows ", both.round(3))
if not np.allclose(one, np.exp(x)) or np.allclose(both, np.exp(x)):
    sys.exit("both are right now, or both wrong")
PY

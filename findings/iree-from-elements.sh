#!/usr/bin/env bash
# IREE for CPUs: `tensor.from_elements` of a column stores elements at wrong places. A tensor of 2x1
# made of 1 and 2 comes out as 2 and 2. The same elements as a vector of two are right.
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
func.func @main(%x: tensor<2xi64>) -> tensor<DIMSxi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %x[%c0] : tensor<2xi64>
  %b = tensor.extract %x[%c1] : tensor<2xi64>
  %y = tensor.from_elements %a, %b : tensor<DIMSxi64>
  return %y : tensor<DIMSxi64>
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
x = np.array([1, 2])
vector = run(TEXT.replace("DIMS", "2"), x)[0]
column = run(TEXT.replace("DIMS", "2x1"), x)[0]
print("from_elements 1, 2 : tensor<2xi64>  ", vector.tolist())
print("from_elements 1, 2 : tensor<2x1xi64>", column.tolist())
if vector.tolist() != [1, 2] or column.tolist() == [[1], [2]]:
    sys.exit("both are right now, or both wrong")
PY

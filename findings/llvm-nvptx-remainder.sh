#!/usr/bin/env bash
# LLVM's text of frem: the exact remainder, with the dividend's sign and smaller than the divisor. For NVIDIA GPUs LLVM
# makes x - trunc(x / y) * y of it, with a rounded quotient: 1e10 rem 3 is 256 in place of 1, and 1e6 rem 0.1
# is -0.015 in place of 0.085, a negative number of two positive ones. For AMD GPUs the same LLVM has an exact loop.
# Wrapped angles and positions, fmod of a model and arith.remf of MLIR go this way.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 llvmlite==0.50.0
"$work/venv/bin/python" - <<'PY'
import re
import sys
from fractions import Fraction

import llvmlite
import llvmlite.binding as llvm
import numpy as np

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
print("llvmlite", llvmlite.__version__, "LLVM", ".".join(map(str, llvm.llvm_version_info)))
TEXT = """
define KIND void @k(ptr addrspace(1) %p, float %x, float %y) {
  %r = frem float %x, %y
  store float %r, ptr addrspace(1) %p
  ret void
}
"""


def assembly(triple, cpu, kind):
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    module = llvm.parse_assembly(TEXT.replace("KIND", kind))
    module.triple, module.data_layout = triple, str(machine.target_data)
    return machine.emit_assembly(module)


ptx = assembly("nvptx64-nvidia-cuda", "sm_90", "ptx_kernel")
steps = re.findall(r"^\s+((?:div|cvt|neg|fma)\S*)", ptx, re.M)
print("sm_90: ", *steps)
amd = assembly("amdgcn-amd-amdhsa", "gfx942", "amdgpu_kernel")
print("gfx942: a loop:", bool(re.search(r"s_cbranch_\w+ \.LBB0_\d+", amd)), " instructions of f32:", amd.count("_f32"))


def by_steps(x, y):
    """Return x - trunc(x / y) * y with one rounding of the quotient and one of fma, in f32."""
    quotient = np.trunc(np.float32(x) / np.float32(y))
    return np.float32(float(Fraction(float(x)) - Fraction(float(quotient)) * Fraction(float(y))))


wrong = []
for x, y in ((7.5, 2), (1e10, 3), (1e6, 0.1)):
    x, y = np.float32(x), np.float32(y)
    found, right = by_steps(x, y), np.fmod(x, y)
    wrong.append(bool(found != right))
    print(f"{x} rem {y}: C's fmod {right}  by the steps of sm_90 {found}")
if steps != ["div.rn.f32", "cvt.rzi.f32.f32", "neg.f32", "fma.rn.f32"]:
    sys.exit("the steps are others now")
sys.exit(0 if wrong == [False, True, True] else "these steps are exact now")
PY

#!/usr/bin/env bash
# LLVM's text of llvm.sin: the same value as sin of the C library. For AMD GPUs its f32 becomes a multiplication by
# 1 / (2 pi), rounded to f32, and v_sin_f32; no flag has to allow it, and nothing reduces the argument. The rounding of
# the product alone makes sin(100,000) 3% wrong, and sin(10,000,000) 0.71 in place of 0.42. llvm.sqrt of the same
# target is made exact in software, and for NVIDIA the approximate sine needs the flag afn. Rotary embeddings take the
# sine of a token's position.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 llvmlite==0.50.0
"$work/venv/bin/python" - <<'PY'
import re
import sys

import llvmlite
import llvmlite.binding as llvm
import numpy as np

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
print("llvmlite", llvmlite.__version__, "LLVM", ".".join(map(str, llvm.llvm_version_info)))
TEXT = """
define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %r = call float @llvm.NAME.f32(float %x)
  store float %r, ptr addrspace(1) %p
  ret void
}
declare float @llvm.NAME.f32(float)
"""


def instructions(name, cpu):
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=cpu, opt=2)
    module = llvm.parse_assembly(TEXT.replace("NAME", name))
    module.triple, module.data_layout = "amdgcn-amd-amdhsa", str(machine.target_data)
    text = machine.emit_assembly(module)
    found = re.findall(r"^\s+([vs]_\w+_f32\w*) (.*?)\s*(?:;.*)?$", text, re.M)
    return [re.sub(r"_e(32|64)$", "", op) for op, _ in found], text


seen = {}
for cpu in ("gfx942", "gfx1201"):
    seen[cpu], text = instructions("sin", cpu)
    print(f"{cpu}, llvm.sin.f32: ", *seen[cpu], " constant 0.15915494:", "0.15915494" in text)
    print(f"{cpu}, llvm.sqrt.f32:", len(instructions("sqrt", cpu)[0]), "instructions of f32")
    short = seen[cpu] in (["v_mul_f32", "v_sin_f32"], ["s_mul_f32", "v_sin_f32"])
    if not short or "0.15915494" not in text:
        sys.exit("arguments of the sine are reduced now")
x = np.array([1, 100, 1e4, 1e5, 1e7], np.float32)
turns = x * np.float32(0.15915494)
best = np.sin(turns.astype(np.float64) * 2 * np.pi)
right = np.sin(x.astype(np.float64))
print("x                             ", x)
print("sin(x)                        ", right)
print("exact sine of the f32 product ", best)
sys.exit(0 if abs(best - right)[3] > 1e-3 else "the product is exact enough")
PY

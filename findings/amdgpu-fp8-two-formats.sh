#!/usr/bin/env bash
# AMD's gfx942 and gfx950 convert to 8-bit floats by one instruction of one encoding, and mean two formats: on gfx942
# float8_e4m3fnuz, where 1.0 is 0x40, on gfx950 OCP's float8_e4m3fn, where 1.0 is 0x38. LLVM compiles a kernel for
# both to the same bytes, and its intrinsic has one name. So a file of bytes written on one and read on the other is
# off by a factor of 2, with another largest number and another NaN. AMD's manuals of CDNA 3 and 4 give the formats;
# LLVM's generic target for both (gfx9-4-generic) leaves out these instructions for the same reason.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml-dtypes==0.6.0 \
  llvmlite==0.50.0 pyelftools==0.33
"$work/venv/bin/python" - <<'PY'
import io
import sys

import llvmlite
import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
from elftools.elf.elffile import ELFFile

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
print("llvmlite", llvmlite.__version__, "LLVM", ".".join(map(str, llvm.llvm_version_info)))
TEXT = """
define amdgpu_kernel void @k(ptr addrspace(1) %p, float %x, float %y) {
  %r = call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float %x, float %y, i32 0, i1 false)
  store i32 %r, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.cvt.pk.fp8.f32(float, float, i32, i1)
"""


def compile_for(cpu):
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=cpu, opt=2)
    module = llvm.parse_assembly(TEXT)
    module.triple, module.data_layout = "amdgcn-amd-amdhsa", str(machine.target_data)
    [line] = [v.strip() for v in machine.emit_assembly(module).splitlines() if "cvt_pk_fp8" in v]
    file = ELFFile(io.BytesIO(machine.emit_object(module)))
    print(f"{cpu}: {line}, flags of the file {file.header['e_flags']:#x}")
    return file.get_section_by_name(".text").data()


same = compile_for("gfx942") == compile_for("gfx950")
print("the kernels are the same bytes:", same)
for name in ("float8_e4m3fnuz", "float8_e4m3fn"):
    kind = getattr(ml_dtypes, name)
    one = np.ones(1, kind).view(np.uint8)[0]
    print(f"{name:16} 1.0 is {one:#x}, the largest number {ml_dtypes.finfo(kind).max}", end=", ")
    print("0x38 is", np.array([0x38], np.uint8).view(kind)[0], " 0x80 is", np.array([0x80], np.uint8).view(kind)[0])
if not same:
    sys.exit("the two are encoded otherwise now")
PY

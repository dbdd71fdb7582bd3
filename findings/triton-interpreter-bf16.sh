#!/usr/bin/env bash
# Triton's interpreter (TRITON_INTERPRET=1) runs a kernel on a CPU, to look for faults in it. It cuts f32 to bf16
# towards zero, where the compiled kernel rounds to nearest even on NVIDIA and on AMD: 1.0117 is 1.0078 in place of
# 1.0156. The interpreter's text says that bf16 arithmetic is unsupported and to convert to f32; the conversion is
# what differs. Conversions to f16 are rounded as they should be.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml-dtypes==0.6.0 triton==3.9.0
cat >"$work/kernels.py" <<'PY'
import triton
import triton.language as tl


@triton.jit
def narrow(x, y, n: tl.constexpr, kind: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(y + i, tl.load(x + i).to(kind).to(tl.float32))
PY
cat >"$work/interpret.py" <<'PY'
import os

os.environ["TRITON_INTERPRET"] = "1"
import ml_dtypes
import numpy as np
import triton.language as tl
from kernels import narrow


class Array:
    """numpy array with the members of a tensor that the interpreter asks for."""

    dtype = "fp32"

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, size, device):
        return Array(self.array)

    def set_(self, storage, *shape):
        self.array = storage.array

    def copy_(self, other):
        pass

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.shape

    def stride(self):
        return (1,)


x = np.array([1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-12, 3.0, 1.01], np.float32)
seen = []
for kind, wanted in ((tl.bfloat16, ml_dtypes.bfloat16), (tl.float16, np.float16)):
    y = np.zeros_like(x)
    narrow[(1,)](Array(x), Array(y), len(x), kind)
    rounded = x.astype(wanted).astype(np.float32)
    print(f"{kind}: numbers {x}\n  nearest even {rounded}\n  interpreter  {y}")
    seen.append(np.array_equal(y, rounded))
cut = (x.view(np.uint32) >> 16 << 16).view(np.float32)
narrow[(1,)](Array(x), Array(y), len(x), tl.bfloat16)
raise SystemExit(0 if seen == [False, True] and np.array_equal(y, cut) else "bf16 is rounded now")
PY
cat >"$work/compile.py" <<'PY'
import triton
import triton.language as tl
from kernels import narrow
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

print("triton", triton.__version__)
source = ASTSource(
    fn=narrow, signature={"x": "*fp32", "y": "*fp32", "n": "constexpr", "kind": "constexpr"},
    constexprs={"n": 128, "kind": tl.bfloat16},
)
ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
[line] = {line.strip().split()[0] for line in ptx.splitlines() if "cvt.r" in line and "bf16" in line}
print("compiled for NVIDIA sm_90:", line)
amd = triton.compile(source, target=GPUTarget("hip", "gfx950", 64)).asm["amdgcn"]
lines = sorted({line.strip().split()[0] for line in amd.splitlines() if "cvt" in line and "bf16" in line})
print("compiled for AMD gfx950:  ", *lines)
raise SystemExit(0 if line.startswith("cvt.rn.") and lines else "kernels are compiled otherwise now")
PY
export TRITON_CACHE_DIR="$work/cache"
cd "$work"
"$work/venv/bin/python" -W ignore compile.py
"$work/venv/bin/python" -W ignore interpret.py

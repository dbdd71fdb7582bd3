#!/usr/bin/env bash
# Triton's interpreter (TRITON_INTERPRET=1) converts to 8-bit floats by bits alone: what is beyond 448, the largest
# float8_e4m3fn, comes back as another number: 500 as 256, infinity as 256, NaN as 384. The compiled kernel saturates:
# cvt.rn.satfinite gives 448, and keeps NaN. A quantization kernel that leaves the clipping to it is right on a GPU, and
# wrong in the interpreter, where a NaN is no longer seen.
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


x = np.array([1.0, 448.0, 500.0, np.inf, np.nan, 1e6, -500.0, 0.001953125], np.float32)
wanted = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
y = np.zeros_like(x)
narrow[(1,)](Array(x), Array(y), len(x), tl.float8e4nv)
print("numbers      ", x)
print("saturated    ", wanted)
print("interpreter  ", y)
same = [bool(v == w or (v != v and w != w)) for v, w in zip(y, wanted, strict=True)]
raise SystemExit(0 if same == [True] * 2 + [False] * 5 + [True] else "such numbers are converted otherwise now")
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
    constexprs={"n": 128, "kind": tl.float8e4nv},
)
ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
[line] = {line.strip().split()[0] for line in ptx.splitlines() if "e4m3x2.f32" in line}
print("compiled for NVIDIA sm_90:", line)
raise SystemExit(0 if "satfinite" in line else "kernels are compiled otherwise now")
PY
export TRITON_CACHE_DIR="$work/cache"
cd "$work"
"$work/venv/bin/python" -W ignore compile.py
"$work/venv/bin/python" -W ignore interpret.py

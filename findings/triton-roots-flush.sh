#!/usr/bin/env bash
# Triton compiles + - * and / of f32 for NVIDIA GPUs with all numbers below 1.2e-38 kept. Its sqrt and rsqrt take 0 for
# them (.ftz in the PTX), although no option asks for it: the rsqrt of 1e-40 is infinity in place of 1e20, so a norm of
# tiny numbers without an epsilon overflows. tl.sqrt_rn, the exact root, keeps them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check triton==3.9.0
cat >"$work/kernels.py" <<'PY'
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def divide(x, y, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i) / tl.load(y + i) + tl.load(x + i) * tl.load(y + i))


@triton.jit
def root(x, y, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.sqrt(tl.load(x + i)))


@triton.jit
def root_rn(x, y, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.sqrt_rn(tl.load(x + i)))


@triton.jit
def reciprocal_root(x, y, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.rsqrt(tl.load(x + i)))


print("triton", triton.__version__)
TARGETS = {"sm_90": (GPUTarget("cuda", 90, 32), "ptx"), "gfx942": (GPUTarget("hip", "gfx942", 64), "amdgcn")}
OPS = r"^\s+((?:add|mul|fma|div|sqrt|rsqrt|ex2)\.\S*f32|v_(?:sqrt|rsq)_f32\w*)"
found = {}
for kernel in (divide, root, root_rn, reciprocal_root):
    for name, (target, text) in TARGETS.items():
        source = ASTSource(fn=kernel, signature=dict.fromkeys(("x", "y", "out"), "*fp32"), constexprs={})
        made = triton.compile(source, target=target).asm[text]
        found[kernel.__name__, name] = re.findall(OPS, made, re.M)
        print(f"{kernel.__name__:16} {name}:", *found[kernel.__name__, name])
flushed = {kernel: any(".ftz" in op for op in ops) for (kernel, name), ops in found.items() if name == "sm_90"}
if flushed != {"divide": False, "root": True, "root_rn": False, "reciprocal_root": True}:
    sys.exit("other operations flush now")
if not all(found[kernel, "sm_90"] for kernel in flushed):
    sys.exit("the operations have other names now")
PY
TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" -W ignore "$work/kernels.py"

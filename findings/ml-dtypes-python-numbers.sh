#!/usr/bin/env bash
# numpy 2 (NEP 50): a Python number takes the type of the array it meets, so f16 times 2.0 is f16. With ml_dtypes
# bf16 times 2.0 is f32, float8_e4m3fn times 2.0 too, and int4 times 2 is int8. np.where with a Python number makes
# float64. A loop in bf16 goes on in f32 from its first constant. Of int4, // and % give int4, and np.fmod and >> int8.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml-dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np

print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
found = {}
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    x = np.ones(2, kind)
    row = [x * 2.0, x + 1, np.where(x > 0, x, 0.0), np.clip(x, 0, 1), np.maximum(x, 0.0)]
    found[x.dtype.name] = [y.dtype.name for y in row]
    print(f"{x.dtype.name:14} x * 2.0, x + 1, where(c, x, 0.0), clip(x, 0, 1), maximum(x, 0.0):", end=" ")
    print(*found[x.dtype.name])
for kind in (np.int8, ml_dtypes.int4):
    x = np.array([7, -7], kind)
    y = np.array([2, 2], kind)
    row = [x * 2, x // y, x % y, np.fmod(x, y), x >> y]
    found[x.dtype.name] = [z.dtype.name for z in row]
    print(f"{x.dtype.name:14} x * 2, x // y, x % y, fmod(x, y), x >> y:", *found[x.dtype.name])
if set(found["float16"]) != {"float16"} or set(found["int8"]) != {"int8"}:
    sys.exit("numpy's own types follow other rules now")
if found["bfloat16"][0] != "float32" or found["bfloat16"][2] != "float64":
    sys.exit("bf16 keeps its type now")
if found["int4"] != ["int8", "int4", "int4", "int8", "int8"]:
    sys.exit("int4 follows other rules now")
PY

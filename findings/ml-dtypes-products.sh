#!/usr/bin/env bash
# ml_dtypes: np.dot of two arrays of bf16 is bf16, and the same product by @ is f32; np.einsum refuses both. Of a
# thousand ones of float8_e4m3fn np.dot gives NaN, as 1000 is beyond 448, and @ gives 1000.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  ml-dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys
import warnings

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")
print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
found = {}
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    ones = np.ones((1, 1000), kind)
    dot, at = np.dot(ones, ones.T), ones @ ones.T
    try:
        einsum = str(np.einsum("ij,kj->ik", ones, ones).dtype)
    except TypeError as refused:
        einsum = f"TypeError: {refused}"
    name = np.dtype(kind).name
    found[name] = str(dot.dtype), str(at.dtype), float(dot[0, 0]), float(at[0, 0])
    print(f"{name}: np.dot {dot.dtype} {dot[0, 0]}, @ {at.dtype} {at[0, 0]}, np.einsum {einsum}")
half, brain, narrow = found.values()
if half[:2] != ("float16", "float16") or brain[:2] != ("bfloat16", "float32"):
    sys.exit("the types are others now")
if not np.isnan(narrow[2]) or narrow[3] != 1000:
    sys.exit("the products are others now")
PY

#!/usr/bin/env bash
# numpy adds arrays of ml_dtypes in their own type: a thousand ones of bf16 sum to 256, of
# float8_e4m3fn to 16, and the mean of a thousand bf16 ones is 0.2559. numpy's own f16 gives 1000
# and 1. The dot of the same arrays is 1000, as it is taken in f32.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml_dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np

print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
sums = []
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
    ones = np.ones(1000, kind)
    sums.append(float(ones.sum()))
    print(f"{ones.dtype.name:14} sum {ones.sum()}  mean {ones.mean()}  dot {ones @ ones}")
if sums != [1000, 256, 16, 8]:
    sys.exit("sums are others now")
PY

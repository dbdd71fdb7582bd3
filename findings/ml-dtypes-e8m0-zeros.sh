#!/usr/bin/env bash
# float8_e8m0fnu, the type of MX scales, has no zero: its bits of 0 are 2**-127. So np.zeros is full of 5.9e-39, where
# a converted 0.0 is NaN. numpy starts a sum from a converted 0, and the sum and the mean of four ones are NaN.
# np.cumsum and a + b are right.
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
kind = ml_dtypes.float8_e8m0fnu
zeros, ones = np.zeros(2, kind), np.ones(4, kind)
as_zero = np.array([0.0]).astype(kind)
print("np.zeros:", zeros, " == 0:", zeros == 0, " np.array([0.0]).astype:", as_zero)
found = {"sum": ones.sum(), "mean": ones.mean(), "cumsum": ones.cumsum()[-1], "a + a": (ones + ones)[0],
         "prod": ones.prod()}
for name, value in found.items():
    print(f"{name} of ones:", value)
if float(zeros[0]) == 0 or not np.isnan(float(found["sum"])) or float(found["a + a"]) != 2:
    sys.exit("zeros and sums of e8m0 are others now")
PY

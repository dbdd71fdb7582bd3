#!/usr/bin/env bash
# np.sort and np.unique of ml_dtypes arrays with a NaN leave elements where they are: bf16 3, NaN,
# 2 is "sorted" as 3, NaN, 2. numpy's own types sort NaN to the end. No error, no warning.
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
right = []
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
    x = np.array([3, np.nan, 2, 1, 1], kind)
    ordered = np.sort(x).astype(np.float32)
    print(f"{x.dtype.name:14} sort {ordered}  unique {np.unique(x)}")
    right.append(ordered[:4].tolist() == [1, 1, 2, 3])
if right != [True, False, False, False]:
    sys.exit("NaN is sorted to the end now")
PY

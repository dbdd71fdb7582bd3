#!/usr/bin/env bash
# np.nansum and np.nanmean leave NaNs out, says their text. Of a bf16 array with a NaN they are NaN, and
# np.nan_to_num leaves it in: numpy replaces NaNs of its own floating types alone, and takes other types for free
# of them. np.nanmax of the same array is right, and f16 is right in each. A calibration in bf16 goes wrong unseen.
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
    x = np.array([1, np.nan, 3], kind)
    row = [np.nansum(x), np.nanmean(x), np.nanmax(x), np.nan_to_num(x)[1], np.nancumsum(x)[-1]]
    found[x.dtype.name] = [float(v) for v in row]
    print(f"[1, NaN, 3] of {x.dtype.name}: nansum, nanmean, nanmax, nan_to_num, nancumsum", end=" ")
    print(*found[x.dtype.name])
if found["float16"] != [4, 2, 3, 0, 4]:
    sys.exit("f16 is another now")
for name in ("bfloat16", "float8_e4m3fn"):
    if not np.isnan(found[name][:2] + found[name][3:]).all() or found[name][2] != 3:
        sys.exit(f"NaNs of {name} are left out now")
PY

#!/usr/bin/env bash
# np.testing.assert_array_equal takes NaNs for equal, says its text. An array of bf16 or of 8-bit floats of
# ml_dtypes with a NaN does not equal itself there, while assert_allclose finds it close. For f16 both pass.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  ml-dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np

print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)


def passes(check, kind):
    x = np.array([1, np.nan], kind)
    try:
        check(x, x.copy())
    except AssertionError:
        return False
    return True


found = {}
for kind in (np.float16, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    name = np.dtype(kind).name
    found[name] = [
        passes(check, kind) for check in (np.testing.assert_array_equal, np.testing.assert_allclose)
    ]
    print(f"[1, NaN] of {name}: assert_array_equal passes {found[name][0]},", end=" ")
    print(f"assert_allclose passes {found[name][1]}, kind {np.dtype(kind).kind!r}")
if found["float16"] != [True, True] or found["bfloat16"] != [False, True]:
    sys.exit("NaN of bf16 is as that of f16 now")
PY

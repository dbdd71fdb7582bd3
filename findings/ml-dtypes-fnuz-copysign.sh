#!/usr/bin/env bash
# float8_e4m3fnuz and float8_e5m2fnuz, the 8-bit floats of AMD's gfx940 to gfx942, have one zero; the bits of a minus
# zero are their NaN. np.copysign of ml_dtypes sets the sign bit of 0 all the same: copysign(0, -1) is NaN. So is what
# is made of it, such as a rounding away from zero by copysign. Negation, abs and conversion of -0.0 give 0.
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
for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz"):
    zero, minus = np.zeros(1, getattr(ml_dtypes, name)), -np.ones(1, getattr(ml_dtypes, name))
    made = [np.copysign(zero, minus), -zero, np.float32([-0.0]).astype(zero.dtype), zero * minus]
    found[name] = [float(v[0]) for v in made]
    print(f"{name:18} copysign(0, -1), -0, the conversion of -0.0, 0 * -1:", *found[name])
if found["float8_e4m3fn"] != [0, 0, 0, 0]:
    sys.exit("float8_e4m3fn is another now")
for name in ("float8_e4m3fnuz", "float8_e5m2fnuz"):
    if not np.isnan(found[name][0]) or found[name][1:] != [0, 0, 0]:
        sys.exit(f"copysign of {name} is another now")
PY

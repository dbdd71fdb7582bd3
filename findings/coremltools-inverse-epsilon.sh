#!/usr/bin/env bash
# Operators of Core ML's MIL have an epsilon that their names do not tell, and a default for it. mb.inverse, the
# reciprocal, is 1 / (x + 1e-4): of 0.001 it is 909 in place of 1000, of -0.001 -1111, of 0 10,000. mb.log(0) is -103
# and mb.rsqrt(0) 1,000,000, both finite. mb.real_div(1, x) divides. So a norm whose reciprocal is taken by name has
# three digits.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  coremltools==9.0
"$work/venv/bin/python" -W ignore - 2>/dev/null <<'PY'
import sys

import coremltools
import numpy as np
from coremltools.converters.mil import Builder as mb

print("coremltools", coremltools.__version__, "numpy", np.__version__)


def folded(function):
    """Return the number that coremltools computes for an operator of constants."""
    found = []

    @mb.program(input_specs=[mb.TensorSpec(shape=(1,))])
    def program(x):
        found.append(function().val)
        return x

    return np.asarray(found[0])


x = np.array([0.001, -0.001, 0.5, 0], np.float32)
zero = np.zeros(1, np.float32)
inverse, divided = folded(lambda: mb.inverse(x=x)), folded(lambda: mb.real_div(x=np.float32(1), y=x[:3]))
log, rsqrt = folded(lambda: mb.log(x=zero)), folded(lambda: mb.rsqrt(x=zero))
print("x                ", x, "\nmb.inverse(x)    ", inverse, "\nmb.real_div(1, x)", divided)
print("mb.log(0)", log, " mb.rsqrt(0)", rsqrt)
if not np.allclose(divided, [1000, -1000, 2]):
    sys.exit("quotients are others now")
if not np.allclose(inverse, [909.09, -1111.11, 1.9996, 10000], rtol=1e-4):
    sys.exit("reciprocals are others now")
if np.isinf(log).any() or np.isinf(rsqrt).any():
    sys.exit("the logarithm of 0 is infinite now")
PY

#!/usr/bin/env bash
# tinygrad writes inverse functions by formulas that lose their digits: asinh(x) as log(x + sqrt(x * x + 1)), which is
# minus infinity at -10,000 in f32 (the sum is 0), and atan(x) as asin(x / sqrt(1 + x * x)), which is 0 at 1e20 (the
# square is infinite). The answers are -9.9 and 1.57. asinh of the positive number and atan of 1e18 are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 tinygrad==0.14.0
export DEV=PYTHON
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
from tinygrad import Tensor

print("tinygrad", version("tinygrad"), "numpy", np.__version__)
x = np.array([10000, -100, -10000, -1e6], np.float32)
z = np.array([-1, 1e18, 1e20, -1e30], np.float32)
asinh, atan = Tensor(x).asinh().numpy(), Tensor(z).atan().numpy()
print("x              ", x, "\nnumpy, asinh   ", np.arcsinh(x), "\ntinygrad, asinh", asinh)
print("x              ", z, "\nnumpy, atan    ", np.arctan(z), "\ntinygrad, atan ", atan)
if not np.allclose(asinh[:1], np.arcsinh(x)[:1], rtol=1e-4) or not np.allclose(atan[:2], np.arctan(z)[:2], rtol=1e-4):
    sys.exit("other numbers are wrong now")
if not np.isneginf(asinh[2:]).all() or atan[2:].any():
    sys.exit("these numbers are others now")
PY

#!/usr/bin/env bash
# Numba compiles numpy functions for CPUs and GPUs, with other numbers. np.sum and np.mean of float32 add one by one in
# float32, where numpy adds in blocks: of ten million 0.1 the sum is 9 % off. An array of uint8 plus 1 is int64, float32
# times 2.0 float64, against numpy's rules (NEP 50); 2 ** -1 is 0, 1 << 65 is 2, round(2.675, 2) is 2.68, and 1 // 0.1
# of float32 is 10. Each is a kernel that passes its test on small arrays, and differs in a model.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  numba==0.68.1
"$work/venv/bin/python" -W ignore - <<'PY'
import sys

import numba
import numpy as np

print("numba", numba.__version__, "numpy", np.__version__)
tenths = np.full(10_000_000, 0.1, np.float32)
small = np.array([255], np.uint8)
one = np.array([1], np.float32)
cases = [
    ("np.sum of 1e7 float32 0.1", lambda x: np.sum(x), (tenths,)),
    ("np.mean of 1e7 float32 0.1", lambda x: np.mean(x), (tenths,)),
    ("uint8 255 + 1", lambda x: x + 1, (small,)),
    ("float32 1 * 2.0", lambda x: x * 2.0, (one,)),
    ("2 ** -1", lambda x, y: x**y, (2, -1)),
    ("1 << 65", lambda x, y: x << y, (1, 65)),
    ("round(2.675, 2)", lambda x: round(x, 2), (2.675,)),
    ("float32 1 // 0.1", lambda x, y: np.floor_divide(x, y), (one, np.array([0.1], np.float32))),
    ("np.sum of 4 float32 0.1", lambda x: np.sum(x), (tenths[:4],)),
]
changed = []
for name, function, arguments in cases:
    expected, found = function(*arguments), numba.njit(function)(*arguments)
    kinds = [f" {v.dtype}" if isinstance(v, np.ndarray) else "" for v in (expected, found)]
    print(f"{name:27} numpy {expected}{kinds[0]}  numba {found}{kinds[1]}")
    same = kinds[0] == kinds[1] and np.allclose(float(np.ravel(expected)[0]), float(np.ravel(found)[0]), rtol=1e-5)
    if same != (name == "np.sum of 4 float32 0.1"):
        changed.append(name)
if changed:
    sys.exit(f"as numpy now: {changed}")
PY

#!/usr/bin/env bash
# Sparsemax gives probabilities: x - tau, cut at 0, with the tau by which they sum to 1. keras.ops.sparsemax, and the
# activation "sparsemax", take tau from the sum of all running sums in place of the last one: (1, 2, 2.5) gives zeros
# alone, where (0, 0.25, 0.75) is right, and (0.1, 0.2, 0.3) sums to 0.23. Where one number is left, as in (3, 2, 1),
# or all are equal, it is right. An attention by sparsemax attends to nothing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 keras==3.15.1 \
  jax==0.10.2
export KERAS_BACKEND=jax JAX_PLATFORMS=cpu
"$work/venv/bin/python" - <<'PY'
import sys

import keras
import numpy as np

print("keras", keras.__version__, "backend", keras.backend.backend())


def by_bisection(x):
    """Return max(x - tau, 0) for the tau by which the numbers sum to 1."""
    low, high = x.min() - 1, x.max()
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(x - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(x - low, 0)


sums = {}
for row in ([3, 2, 1], [1, 2, 2.5], [0.1, 0.2, 0.3], [0, 0, 0, 0]):
    x = np.array([row], np.float32)
    found = keras.ops.convert_to_numpy(keras.ops.sparsemax(x))[0]
    layer = keras.ops.convert_to_numpy(keras.layers.Activation("sparsemax")(x))[0]
    right = by_bisection(x[0].astype(np.float64))
    sums[tuple(row)] = float(found.sum())
    print(f"{row}: right {right.round(4)} Keras {found.round(4)}, as a layer {layer.round(4)}, sum {found.sum():.3}")
    if abs(right.sum() - 1) > 1e-6:
        sys.exit("the bisection is wrong")
if abs(sums[3, 2, 1] - 1) > 1e-4 or sums[1, 2, 2.5] > 0.01 or abs(sums[0.1, 0.2, 0.3] - 0.2333) > 0.01:
    sys.exit("the sums are others now")
PY

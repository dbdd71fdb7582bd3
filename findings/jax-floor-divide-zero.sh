#!/usr/bin/env bash
# An integer divided by 0 is 0 in numpy, with a warning, and has no meaning in XLA, which gives -1. jnp's // corrects a
# rounded quotient by its remainder, and so corrects that one: 5 // 0 and -5 // 0 are -2, and 5 % 0 is 0. lax.div
# has -1 and lax.rem 5. A mean of counts that are masked afterwards, or clipped to 0 from below, hides it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  jax==0.10.2
JAX_PLATFORMS=cpu "$work/venv/bin/python" - <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

print("jax", jax.__version__, "numpy", np.__version__)
x, zero = np.array([5, -5, 0], np.int32), np.zeros(3, np.int32)
with np.errstate(divide="ignore"):
    print("x       ", x, "\nnumpy // ", x // zero, " numpy %", x % zero)
floor, rest = jax.jit(jnp.floor_divide)(x, zero), jax.jit(jnp.remainder)(x, zero)
plain, plain_rest = jax.jit(lax.div)(x, zero), jax.jit(lax.rem)(x, zero)
unsigned = jax.jit(jnp.floor_divide)(np.uint8([5, 0]), np.uint8([0, 0]))
print("jnp //  ", floor, " jnp %", rest, " of uint8 5 and 0:", unsigned)
print("lax.div ", plain, " lax.rem", plain_rest)
print("7 // 2, -7 // 2:", jnp.floor_divide(np.int32([7, -7]), np.int32(2)))
if plain.tolist() != [-1, -1, -1] or plain_rest.tolist() != [5, -5, 0]:
    sys.exit("XLA divides by 0 otherwise now")
if floor.tolist()[:2] != [-2, -2]:
    sys.exit("jnp divides by 0 otherwise now")
PY

#!/usr/bin/env bash
# XLA counts the bits of int4 as if a number had eight: lax.population_count of -4 is 6 in place of 2, and of -1 it
# is -8, as 8 is no int4. uint4 and int8 are right, and so is lax.clz. A dot of int4 wraps at 4 bits, 7 * 7 + 7 * 7
# is 2, and with preferred_element_type=int32, its documented way to a wider sum, the compiler refuses it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 jax==0.10.2
"$work/venv/bin/python" - <<'PY'
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

print("jax", jax.__version__)
x = np.arange(-8, 8)
expected = [(int(v) & 15).bit_count() for v in x]
counts = np.asarray(lax.population_count(jnp.asarray(x).astype(jnp.int4)).astype(jnp.int32)).tolist()
unsigned = np.asarray(
    lax.population_count(jnp.arange(16).astype(jnp.uint4)).astype(jnp.int32)
).tolist()
print("int4       ", x.tolist())
print("bits       ", expected)
print("jax, int4  ", counts)
print("jax, uint4 ", unsigned, "of 0 to 15")
sevens = jnp.full((1, 2), 7, jnp.int4)
narrow = int(jnp.dot(sevens, sevens.T)[0, 0])
try:
    wide = int(jnp.dot(sevens, sevens.T, preferred_element_type=jnp.int32)[0, 0])
except jax.errors.JaxRuntimeError as refused:
    wide = str(refused).split(":")[0]
eight = sevens.astype(jnp.int8)
right = int(jnp.dot(eight, eight.T, preferred_element_type=jnp.int32)[0, 0])
print("dot of two sevens with themselves: as int4", narrow, " as int32", wide, " of int8 as int32", right)
if counts[8:] != expected[8:] or counts[:8] == expected[:8] or unsigned != [v.bit_count() for v in range(16)]:
    sys.exit("bits are counted otherwise now")
if (narrow, wide, right) != (2, "INVALID_ARGUMENT", 98):
    sys.exit("the dot of int4 is another now")
PY

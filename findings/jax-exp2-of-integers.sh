#!/usr/bin/env bash
# jnp.exp2 of a whole number is a power of two, and jnp.log2 of a power of two a whole number, one would think.
# XLA for CPUs takes exp(x log 2) and log(x) / log(2): 2**13 is 8192.004, and floor(log2(8192)) is 12. A block's
# exponent in microscaled formats (MX) is floor(log2(x)): for some powers it is one too small. jnp.power(2, x) and
# jnp.ldexp are exact, and so are np.exp2 and np.log2, of which jnp has the text.
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

print("jax", jax.__version__, "numpy", np.__version__)
n = np.arange(-125, 127)
powers = np.ldexp(np.float32(1), n)
x = n.astype(np.float32)
found = {
    "jnp.exp2": np.asarray(jnp.exp2(x)),
    "jnp.power(2, x)": np.asarray(jnp.power(jnp.float32(2), x)),
    "jnp.ldexp": np.asarray(jnp.ldexp(jnp.float32(1), n)),
    "np.exp2": np.exp2(x),
}
exact = {name: int((y == powers).sum()) for name, y in found.items()}
logs = np.asarray(jnp.log2(powers))
exact["jnp.log2"] = int((logs == x).sum())
exact["np.log2"] = int((np.log2(powers) == x).sum())
for name, count in exact.items():
    print(f"{name:16} exact for {count} of {len(n)} powers of two")
print("jnp.exp2(13) =", found["jnp.exp2"][13 + 125], " jnp.log2(2**-125) =", logs[0])
low = n[np.floor(logs) < x]
print(f"floor(jnp.log2(2**n)) is n - 1 for {len(low)} of them:", low[:8], "...")
others = [v for name, v in exact.items() if name not in ("jnp.exp2", "jnp.log2")]
if exact["jnp.exp2"] == len(n) or exact["jnp.log2"] == len(n) or min(others) < len(n) or not len(low):
    sys.exit("other functions are exact now")
PY

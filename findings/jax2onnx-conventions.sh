#!/usr/bin/env bash
# jax2onnx writes JAX functions as ONNX nodes of the same name, whose conventions are others. jax.image.resize takes the
# nearest at the middle of a pixel, and its file at the corner: 0 and 2 of 0 to 3 in place of 1 and 3. Its cubic has a
# coefficient of -0.5, the file -0.75. lax.round goes away from zero at halves, the file to even. lax.dynamic_slice
# moves a window back into the array, the file cuts it short. one_hot of -1 is empty, in the file the last class.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 jax==0.10.2 jaxlib==0.10.2 jax2onnx==0.17.1 flax==0.12.8
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -W ignore - 2>/dev/null <<'PY'
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from jax2onnx import to_onnx

onnxruntime.set_default_logger_severity(4)
print(*(f"{p} {version(p)}" for p in ("jax", "jax2onnx", "onnxruntime")))


def run(function, *arrays):
    """Return what a function gives in JAX, and what its ONNX model gives."""
    model = to_onnx(function, [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)}
    return np.asarray(function(*map(jnp.asarray, arrays))), session.run(None, given)[0]


row = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
five = np.arange(5, dtype=np.float32)
cases = {
    "resize nearest, 4 to 2": (run(lambda x: jax.image.resize(x, (1, 2, 1, 1), "nearest"), row), [1, 3], [0, 2]),
    "resize cubic, 4 to 8": (
        run(lambda x: jax.image.resize(x, (1, 8, 1, 1), "cubic", antialias=False), row), None, None
    ),
    "lax.round of 0.5, 1.5, 2.5": (
        run(jax.lax.round, np.array([0.5, 1.5, 2.5], np.float32)), [1, 2, 3], [0, 2, 2]
    ),
    "dynamic_slice of 3 at 4 of 5": (
        run(lambda x, k: jax.lax.dynamic_slice(x, (k,), (3,)), five, np.array(4, np.int32)), [2, 3, 4], [4]
    ),
    "one_hot of -1 and 1": (
        run(lambda k: jax.nn.one_hot(k, 3), np.array([-1, 1], np.int32)), [0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0]
    ),
    "floor": (run(jnp.floor, np.array([0.5, -0.5], np.float32)), [0, -1], [0, -1]),
}
changed = []
for name, ((jaxs, file), expected, other) in cases.items():
    print(f"{name:29} JAX {jaxs.ravel().round(3).tolist()} ONNX {file.ravel().round(3).tolist()}")
    if expected is None:
        same = not np.allclose(jaxs, file, atol=1e-3)
    else:
        same = jaxs.ravel().tolist() == expected and file.ravel().tolist() == other
    if not same:
        changed.append(name)
if changed:
    sys.exit(f"written otherwise now: {changed}")
PY

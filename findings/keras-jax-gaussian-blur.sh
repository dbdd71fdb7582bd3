#!/usr/bin/env bash
# keras.ops.image.gaussian_blur takes images with the channels last unless data_format says otherwise. On the backend
# JAX an image without data_format is read with its channels first: it is blurred along its width and over its
# colours, and a red image comes out partly green. A grey one darkens to 45%. With data_format="channels_last", the
# default by Keras's own settings, JAX is right, and the backend numpy is right with and without.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 keras==3.15.1 \
  jax==0.10.2
cat >"$work/blur.py" <<'PY'
import json

import numpy as np
from keras import backend, ops

assert backend.image_data_format() == "channels_last"
red, grey = np.zeros((1, 9, 9, 3), np.float32), np.ones((1, 9, 9, 1), np.float32)
red[..., 0] = 1
found = {}
for name, image in (("red", red), ("grey", grey)):
    for options in ({}, {"data_format": "channels_last"}):
        blurred = ops.convert_to_numpy(ops.image.gaussian_blur(image, (3, 3), (1.0, 1.0), **options))
        found[f"{name}, {options.get('data_format', 'no data_format')}"] = blurred[0, 4, 4].round(3).tolist()
print(json.dumps(found))
PY
export JAX_PLATFORMS=cpu
for backend in numpy jax; do
  KERAS_BACKEND=$backend "$work/venv/bin/python" "$work/blur.py" >"$work/$backend.json"
done
cd "$work"
"$work/venv/bin/python" - <<'PY'
import json
import sys
from importlib.metadata import version
from pathlib import Path

print("keras", version("keras"), "jax", version("jax"))
found = {name: json.loads(Path(f"{name}.json").read_text()) for name in ("numpy", "jax")}
for case in found["numpy"]:
    print(f"middle of {case:21}", *(f" {name}: {values[case]}" for name, values in found.items()))
for case, right in found["numpy"].items():
    same = max(abs(a - b) for a, b in zip(right, found["jax"][case], strict=True)) < 0.01
    if same != case.endswith("channels_last"):
        sys.exit("JAX blurs otherwise now")
PY

#!/usr/bin/env bash
# safetensors.numpy writes arrays of bf16 and of 8-bit floats, and cannot read its own files of them: KeyError 'BF16'.
# The header is right, and safetensors of other frameworks reads it. So a checkpoint in bf16 has to be taken apart by
# hand where PyTorch is not installed: 8 bytes of a length, JSON, then the bytes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml-dtypes==0.6.0 \
  safetensors==0.8.0
"$work/venv/bin/python" - <<'PY'
import json
import sys
from importlib.metadata import version

import ml_dtypes
import numpy as np
from safetensors.numpy import load, save

print("safetensors", version("safetensors"), "ml_dtypes", ml_dtypes.__version__)
found = {}
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2fnuz):
    x = np.array([1, 2, 3], kind)
    content = save({"x": x})
    length = int.from_bytes(content[:8], "little")
    entry = json.loads(content[8 : 8 + length])["x"]
    written = content[8 + length :] == x.tobytes()
    try:
        found[x.dtype.name] = bool(np.array_equal(load(content)["x"], x))
    except KeyError as refused:
        found[x.dtype.name] = f"KeyError: {refused}"
    print(f"{x.dtype.name:16} saved as {entry['dtype']}, right bytes: {written}; load:", found[x.dtype.name])
if found.pop("float16") is not True:
    sys.exit("f16 is read otherwise now")
if not all(str(v).startswith("KeyError") for v in found.values()):
    sys.exit("such files are read now")
PY

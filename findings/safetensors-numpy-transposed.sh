#!/usr/bin/env bash
# safetensors.numpy.save_file writes the memory of an array and not its elements: a transposed weight is
# read back in its new shape, with its elements in their old order; so is an array in Fortran order. Its
# text asks for contiguous arrays; safetensors.torch refuses others with an error.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  safetensors==0.8.0
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
from safetensors.numpy import load_file, save_file

print("safetensors", version("safetensors"))
weight = np.arange(6, dtype=np.float32).reshape(2, 3)
tensors = {"transposed": weight.T, "fortran": np.asfortranarray(weight), "plain": weight}
with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
    save_file(tensors, file.name)
    read = load_file(file.name)
for name, value in tensors.items():
    print(f"{name}: saved {value.tolist()}, read {read[name].tolist()}")
same = {name: np.array_equal(read[name], value) for name, value in tensors.items()}
if same != {"transposed": False, "fortran": False, "plain": True}:
    sys.exit("such arrays are read back as they were now")
PY

#!/usr/bin/env bash
# tinygrad's sort of numbers with a NaN loses the NaN and writes another number twice: 1, NaN, -3, 2 is sorted as
# -3, 1, 1, 2, and argsort names an element twice. It compares and swaps by the least and the most of two numbers,
# where a NaN vanishes. numpy and PyTorch keep every element, with NaN last.
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
x = np.array([1, np.nan, -3, 2], np.float32)
values, places = (v.numpy() for v in Tensor(x).sort())
plain = Tensor(np.nan_to_num(x)).sort()[0].numpy()
print("numbers          ", x)
print("numpy, sort      ", np.sort(x), " argsort", np.argsort(x))
print("tinygrad, sort   ", values, " argsort", places)
print("without the NaN  ", plain)
if not np.array_equal(plain, np.sort(np.nan_to_num(x))):
    sys.exit("numbers are sorted otherwise now")
if np.isnan(values).any() or len(set(places.tolist())) == len(x):
    sys.exit("the NaN is kept now")
PY

#!/usr/bin/env bash
# gguf's quantize gives NaN for a block with a NaN in each of its types but one: in MXFP4 all 32
# numbers of the block are 0, and so they are where one is infinite. A checkpoint with a broken number
# is repaired to zeros, and nothing tells. The text of the format (OCP MX 1.0) has a scale for it: NaN.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 gguf==0.19.0
"$work/venv/bin/python" - <<'PY'
import sys
import warnings
from importlib.metadata import version

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

warnings.simplefilter("ignore")
print("gguf", version("gguf"), "numpy", np.__version__)
found = {}
for name, broken in (("NaN", np.nan), ("infinity", np.inf)):
    block = np.ones(32, np.float32)
    block[0] = broken
    for kind in (Type.MXFP4, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q8_0, Type.BF16):
        back = dequantize(quantize(block[None], kind), kind)[0]
        found[name, kind] = back
        print(f"{name} and 31 ones as {kind.name:5}: {back[:3]}, sum {back.sum()}")
right = dequantize(quantize(np.ones((1, 32), np.float32), Type.MXFP4), Type.MXFP4)
print("32 ones as MXFP4:", right[0, :3])
zeros = [not found[name, Type.MXFP4].any() for name in ("NaN", "infinity")]
others = [np.isfinite(x.sum()) for (_, kind), x in found.items() if kind is not Type.MXFP4]
if not all(zeros) or any(others) or not (right == 1).all():
    sys.exit("blocks with NaN are written otherwise now")
PY

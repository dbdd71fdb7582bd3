#!/usr/bin/env bash
# The text of microscaled formats (OCP MX 1.0) converts to 4-bit floats by rounding to nearest, ties to even: 3.5 is 4,
# 1.75 is 2, 0.75 is 1. gguf, llama.cpp's package, takes the first of two nearest in a list that ascends from 0, for
# MXFP4, its format of that text: a tie always goes towards 0, to 3, 1.5 and 0.5. Scales are powers of two
# and bf16 has 8 bits, so one weight in 200 is such a tie, and all of them shrink. ml_dtypes follows the text.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  gguf==0.19.0 ml-dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType, quants

print("gguf", version("gguf"), "ml_dtypes", ml_dtypes.__version__, "numpy", np.__version__)


def by_gguf(x):
    kind = GGMLQuantizationType.MXFP4
    return quants.dequantize(quants.quantize(x, kind), kind)


def by_text(x):
    """Return the blocks of 32 by OCP's steps: a power of two from the largest, then f32 to e2m1."""
    blocks = x.reshape(-1, 32)
    scale = 2.0 ** (np.floor(np.log2(np.abs(blocks).max(-1, keepdims=True).astype(np.float64))) - 2)
    narrow = (blocks / scale).astype(np.float32).astype(ml_dtypes.float4_e2m1fn)
    return (narrow.astype(np.float64) * scale).astype(np.float32).reshape(x.shape)


ties = np.zeros(32, np.float32)
ties[:9] = 6, 5, 3.5, 2.5, 1.75, 1.25, 0.75, 0.25, -3.5
print("numbers   ", ties[:9], "\nby the text", by_text(ties)[:9], "\nby gguf   ", by_gguf(ties)[:9])
random = np.random.default_rng(0).standard_normal(320000).astype(ml_dtypes.bfloat16).astype(np.float32)
text, gguf = by_text(random), by_gguf(random)
differ = np.flatnonzero(text != gguf)
share = len(differ) / len(random)
print(f"of bf16 weights {share:.1%} differ; mean magnitude {np.abs(text).mean():.5f} and {np.abs(gguf).mean():.5f}")
if by_text(ties)[2] != 4 or by_gguf(ties)[[2, 4, 6, 8]].tolist() != [3, 1.5, 0.5, -3]:
    sys.exit("ties are rounded otherwise now")
if share < 0.001 or np.abs(gguf[differ]).mean() > np.abs(text[differ]).mean():
    sys.exit("weights are alike now")
PY

#!/usr/bin/env bash
# ncnn's vector code has log(0) = NaN, log(inf) = 88.7, exp(100) = 2.4e38 and 1 / 0 = NaN, where C, numpy and ONNX have
# -inf, inf, inf and inf. A mask made as log(0), or a softmax written out, turns to NaN behind a conversion to ncnn.
# Square roots and a division of two tensors keep infinity.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ncnn==1.0.20261020
cd "$work"
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version
from pathlib import Path

import ncnn
import numpy as np

print("ncnn", version("ncnn"), "numpy", np.__version__)
KINDS = {"sqrt": 5, "exp": 7, "log": 8, "reciprocal": 15}


def run(kind, value):
    """Return what a layer makes of sixteen equal numbers, a multiple of every vector's length."""
    Path("net.param").write_text(f"7767517\n2 2\nInput in 0 1 x\nUnaryOp f 1 1 x y 0={KINDS[kind]}\n")
    Path("net.bin").write_bytes(b"")
    net = ncnn.Net()
    net.load_param("net.param")
    net.load_model("net.bin")
    extractor = net.create_extractor()
    extractor.input("x", ncnn.Mat(np.full(16, value, np.float32)).clone())
    return float(np.array(extractor.extract("y")[1])[0])


rows = [("log", 0, -np.inf), ("log", np.inf, np.inf), ("exp", 100, np.inf), ("reciprocal", 0, np.inf),
        ("sqrt", np.inf, np.inf), ("exp", 1, np.e), ("log", 2, np.log(2))]  # fmt: skip
found = []
for kind, value, expected in rows:
    found.append(run(kind, value))
    print(f"{kind}({value}): expected {expected:.5g}, ncnn {found[-1]:.5g}")
if not np.isnan(found[0]) or not np.isfinite(found[2]):
    sys.exit("log and exp are others now")
if not np.allclose(found[4:], [row[2] for row in rows[4:]]):
    sys.exit("plain numbers are wrong now")
PY

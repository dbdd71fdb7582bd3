#!/usr/bin/env bash
# compress_weights of NNCF with INT4_SYM, OpenVINO's 4-bit weights, lets the larger side of a group take the step -8, by
# a scale with a sign. Where both sides are equal, the negative one has it, and the largest positive weight is cut to 7
# steps. A group of equal positive weights counts as that: all of them, as in an average or a sum, become 7/8.
# Negative ones, and INT4_ASYM, are right. INT8_SYM cuts them to 127/128.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  nncf==3.4.0 openvino==2026.4.1
"$work/venv/bin/python" - <<'PY'
import contextlib
import io
import logging
import sys

import nncf
import numpy as np
import openvino
from openvino import opset13

nncf.set_log_level(logging.ERROR)
print("nncf", nncf.__version__, "openvino", openvino.__version__.split("-")[0])
rows = np.zeros((5, 64), np.float32)
rows[0], rows[1], rows[2] = 1 / 64, -1 / 64, 5
rows[3, :2], rows[4, :2] = (6, -6), (6, -5.9)
names = ["an average", "its negative", "sums of 5 x", "6 and -6", "6 and -5.9"]


def compressed(mode):
    """Return the weights that a compressed matmul applies, by its results for unit vectors."""
    x = opset13.parameter([64, 64], np.float32, name="x")
    product = opset13.matmul(x, opset13.constant(rows), False, True)
    options = {"group_size": -1, "all_layers": True} if "INT4" in mode.name else {}
    with contextlib.redirect_stdout(io.StringIO()):  # progress bars
        model = nncf.compress_weights(openvino.Model([product], [x]), mode=mode, **options)
    run = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return run(np.eye(64, dtype=np.float32))[0].T


modes = nncf.CompressWeightsMode
found = {mode: compressed(mode) for mode in (modes.INT4_SYM, modes.INT4_ASYM, modes.INT8_SYM)}
for i, name in enumerate(names):
    print(f"{name:13} first weights {rows[i, :2]}", end="")
    print(*(f"  {mode.name} {weights[i, :2].round(5)}" for mode, weights in found.items()))
ones = np.ones(64, np.float32) @ found[modes.INT4_SYM].T
print("sums of 64 ones by these rows, INT4_SYM:", ones.round(3), " in f32:", rows.sum(1).round(3))
share = found[modes.INT4_SYM][:3, 0] / rows[:3, 0]
if not np.allclose(share, [0.875, 1, 0.875], atol=0.01):
    sys.exit("equal weights are others now")
if not np.allclose(found[modes.INT4_ASYM][:3, 0] / rows[:3, 0], 1, atol=0.01):
    sys.exit("INT4_ASYM is another now")
PY

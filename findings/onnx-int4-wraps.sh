#!/usr/bin/env bash
# onnx.helper.make_tensor of INT4 takes 8 and stores -8, and of -9 it makes 7, without a word. Of INT8 it refuses 300,
# and of 8-bit floats it saturates, as Cast and QuantizeLinear do. A weight that is rounded up to 8 steps comes out
# with the other sign. A conversion by astype of ml_dtypes wraps too, from f32 as well.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml-dtypes==0.6.0 onnx==1.23.2
"$work/venv/bin/python" - <<'PY'
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

print("onnx", onnx.__version__, "ml_dtypes", ml_dtypes.__version__)
found = {}
for name, values in (
    ("INT4", [7, 8, -9]), ("UINT4", [15, 16, -1]), ("INT8", [127, 300]), ("FLOAT8E4M3FN", [448.0, 500.0]),
):  # fmt: skip
    try:
        tensor = helper.make_tensor("t", getattr(TensorProto, name), [len(values)], values)
        found[name] = [float(v) for v in numpy_helper.to_array(tensor)]
    except OverflowError as refused:
        found[name] = f"OverflowError: {refused}"
    print(f"make_tensor {name} of {values}:", found[name])
cast = np.array([7, 8, -9], np.float32).astype(ml_dtypes.int4)
print("ml_dtypes, f32 7, 8 and -9 as int4:", cast)
if found["INT4"] != [7, -8, 7] or cast.astype(int).tolist() != [7, -8, 7]:
    sys.exit("such numbers are others now")
if not str(found["INT8"]).startswith("OverflowError") or found["FLOAT8E4M3FN"] != [448, 448]:
    sys.exit("other types are others now")
PY

#!/usr/bin/env bash
# np.save loses the types of ml_dtypes: bf16 and float8_e4m3fn come back as raw bytes (|V2, |V1)
# with which nothing can be computed, and float8_e5m2 cannot be read back at all. pickle keeps
# each type.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 ml_dtypes==0.6.0
"$work/venv/bin/python" - <<'PY'
import io
import pickle
import sys

import ml_dtypes
import numpy as np

print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
seen = []
for kind in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
    x, file = np.ones(3, kind), io.BytesIO()
    try:
        np.save(file, x)
        file.seek(0)
        seen.append(np.load(file).dtype.str)
    except ValueError as error:
        seen.append(str(error))
    print(f"{x.dtype.name:14} np.save, np.load: {seen[-1]}  pickle:", pickle.loads(pickle.dumps(x)).dtype)
if seen[:3] != ["<f2", "|V2", "|V1"] or "f1" not in seen[3]:
    sys.exit("the types are kept now, or lost otherwise")
PY

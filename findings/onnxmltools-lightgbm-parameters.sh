#!/usr/bin/env bash
# onnxmltools turns a model of LightGBM into ONNX, and leaves out parameters that change its results, without a word:
# the slope `sigmoid` of a classifier, `reg_sqrt`, whose results have to be squared, `linear_tree`, `zero_as_missing`,
# and the sigmoids of `multiclassova`. Missing numbers, categories, poisson and dart are right, so a first test
# passes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 scikit-learn==1.9.1 lightgbm==4.7.0 onnxmltools==1.16.0 \
  onnxconverter-common==1.16.0
"$work/venv/bin/python" -W ignore - <<'PY'
import sys

import lightgbm
import numpy as np
import onnxmltools
import onnxruntime
from onnxmltools.convert.common.data_types import FloatTensorType

onnxruntime.set_default_logger_severity(4)
print("onnxmltools", onnxmltools.__version__, "lightgbm", lightgbm.__version__, "onnxruntime", onnxruntime.__version__)
random = np.random.default_rng(0)
x = random.standard_normal((300, 2)).astype(np.float32)
y = x[:, 0] * 3 + x[:, 1]
gaps, zeros = x.copy(), x.copy()
gaps[::5, 0], zeros[::3, 0] = np.nan, 0
classes = np.digitize(y, [-1, 1])


def compare(x, y, kind=lightgbm.LGBMRegressor, **options):
    """Return the first results of LightGBM and of its ONNX model, and whether all agree."""
    model = kind(n_estimators=5, min_child_samples=5, verbose=-1, n_jobs=1, **options).fit(x, y)
    made = onnxmltools.convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, 2]))], zipmap=False)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    right = model.predict_proba(x) if kind is lightgbm.LGBMClassifier else model.predict(x)
    found = session.run(None, {"x": x})[-1].reshape(right.shape)
    return right.ravel()[:2].round(3), found.ravel()[:2].round(3), np.allclose(right, found, atol=1e-3)


rows = {
    "missing numbers": (gaps, y, {}),
    "poisson": (x, np.abs(y), {"objective": "poisson"}),
    "dart": (x, y, {"boosting_type": "dart"}),
    "zero_as_missing": (zeros, y, {"zero_as_missing": True}),
    "linear_tree": (x, y, {"linear_tree": True}),
    "reg_sqrt": (x, np.abs(y) * 100, {"reg_sqrt": True}),
    "sigmoid=3": (x, (classes > 1).astype(int), {"kind": lightgbm.LGBMClassifier, "sigmoid": 3.0}),
    "multiclassova": (x, classes, {"kind": lightgbm.LGBMClassifier, "objective": "multiclassova"}),
}
same = {}
for name, (inputs, targets, options) in rows.items():
    right, found, same[name] = compare(inputs, targets, **options)
    print(f"{name:16} LightGBM {right} ONNX {found}", "" if same[name] else " differ")
if [name for name, equal in same.items() if equal] != list(rows)[:3]:
    sys.exit("other parameters are followed now")
PY

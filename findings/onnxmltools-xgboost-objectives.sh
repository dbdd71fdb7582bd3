#!/usr/bin/env bash
# onnxmltools makes ONNX of XGBoost and knows the function behind a sum of trees for some objectives only. reg:logistic
# predicts numbers from 0 to 1, and in ONNX negative ones; probabilities of multi:softmax are sums of trees there; a
# regressor of two targets puts all trees into the first; a classifier of two labels takes them for two classes.
# reg:squarederror, binary:logistic, count:poisson and multi:softprob are right. Nothing is said.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 scikit-learn==1.9.1 xgboost-cpu==3.2.0 onnxmltools==1.16.0 \
  onnxconverter-common==1.16.0 skl2onnx==1.20.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import numpy as np
import onnxruntime
import xgboost
from onnxmltools import convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

onnxruntime.set_default_logger_severity(3)
print(*(f"{p} {version(p)}" for p in ("onnxmltools", "xgboost-cpu", "onnxruntime", "scikit-learn")))
random = np.random.default_rng(0)
x = random.standard_normal((300, 4)).astype(np.float32)
amount = np.exp(x[:, 0])
share = amount / (1 + amount.max())
classes = np.digitize(x[:, 0], [-0.5, 0.5])
labels = np.stack([x[:, 0] > 0, x[:, 1] > 0], 1).astype(int)


def run(model, y, output=0):
    """Return what a fitted model gives for x, and what its ONNX model gives."""
    model.fit(x, y)
    made = convert_xgboost(model, initial_types=[("x", FloatTensorType([None, 4]))], target_opset=15)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = model.predict_proba(x) if output else model.predict(x)
    return np.asarray(expected), session.run(None, {"x": x})[output].reshape(np.shape(expected))


size = {"n_estimators": 5, "max_depth": 3}
regressor, classifier = xgboost.XGBRegressor, xgboost.XGBClassifier
cases = [
    ("reg:squarederror", run(regressor(**size), amount), True),
    ("count:poisson", run(regressor(objective="count:poisson", **size), amount), True),
    ("reg:logistic", run(regressor(objective="reg:logistic", **size), share), False),
    ("survival:cox", run(regressor(objective="survival:cox", **size), amount), False),
    ("two targets", run(regressor(**size), np.stack([amount, -amount], 1)), False),
    ("multi:softprob", run(classifier(**size), classes, 1), True),
    ("multi:softmax", run(classifier(objective="multi:softmax", **size), classes, 1), False),
    ("two labels", run(classifier(**size), labels, 1), False),
]
changed = []
for name, (expected, found), right in cases:
    print(f"{name:17} XGBoost {expected[0].round(3)} ONNX {found[0].round(3)}")
    if np.allclose(expected, found, rtol=1e-3, atol=1e-4) != right:
        changed.append(name)
if changed:
    sys.exit(f"others are right now: {changed}")
PY

#!/usr/bin/env bash
# CatBoost writes ONNX itself: save_model(format="onnx"). Regressors by Poisson and Tweedie predict exp of a sum of
# trees, and the file gives the sum. Classifiers by MultiClassOneVsAll and of many labels (MultiLogloss) have a sigmoid
# for each class, and the file a softmax over them. A probability threshold is left out of the label. RMSE, Logloss and
# MultiClass are right, and no warning tells the others apart.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 catboost==1.2.10
cd "$work"
"$work/venv/bin/python" - <<'PY'
import sys

import catboost
import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(3)
print("catboost", catboost.__version__, "onnxruntime", onnxruntime.__version__)
random = np.random.default_rng(0)
x = random.standard_normal((300, 4)).astype(np.float32)
counts = random.poisson(np.exp(1 + x[:, 0]))
positive = (x[:, 0] > 0.5).astype(int)
classes = np.digitize(x[:, 0], [-0.5, 0.5])
labels = np.stack([x[:, 0] > 0, x[:, 1] > 0], 1).astype(int)
size = {"iterations": 20, "depth": 3, "verbose": False, "allow_writing_files": False, "random_seed": 0}


def saved(model):
    """Return the results of a fitted model's ONNX file; probabilities as an array."""
    model.save_model("model.onnx", format="onnx")
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    first, *rest = session.run(None, {"features": x})
    return first, np.array([[row[k] for k in sorted(row)] for row in rest[0]]) if rest else None


changed = []


def compare(name, expected, found, right):
    print(f"{name:19} CatBoost {np.round(expected[0], 3)} ONNX {np.round(found[0], 3)}")
    if np.allclose(expected, found, rtol=1e-3, atol=1e-4) != right:
        changed.append(name)


for loss, right in (("RMSE", True), ("Poisson", False), ("Tweedie:variance_power=1.5", False)):
    model = catboost.CatBoostRegressor(loss_function=loss, **size).fit(x, counts)
    compare(loss.split(":")[0], model.predict(x), saved(model)[0].ravel(), right)
for loss, y, right in (
    ("Logloss", positive, True),
    ("MultiClass", classes, True),
    ("MultiClassOneVsAll", classes, False),
    ("MultiLogloss", labels, False),
):
    model = catboost.CatBoostClassifier(loss_function=loss, **size).fit(x, y)
    compare(loss, model.predict_proba(x), saved(model)[1], right)
model = catboost.CatBoostClassifier(loss_function="Logloss", **size).fit(x, positive)
model.set_probability_threshold(0.95)
own, found = int(model.predict(x).sum()), int(saved(model)[0].sum())
half = int((saved(model)[1][:, 1] > 0.5).sum())
print("threshold 0.95: ones of 300 by CatBoost", own, "by ONNX", found, "probabilities above 0.5:", half)
if own == found or found != half:
    changed.append("threshold")
if changed:
    sys.exit(f"others are right now: {changed}")
PY

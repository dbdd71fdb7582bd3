#!/usr/bin/env bash
# sklearn-onnx leaves out parameters of scikit-learn without a word. SimpleImputer(add_indicator=True) loses its columns
# of what was missing, so that columns behind it move. Normalizer("max") divides by the largest magnitude since 0.24,
# and in ONNX by the largest number: of (-4, 1) by 1 in place of 4. SGDClassifier(loss="modified_huber") of three
# classes decides by the scores, and in ONNX by its probabilities, which are tied: a third of the labels differ.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 scikit-learn==1.9.1 skl2onnx==1.20.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnxruntime
import skl2onnx
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import Normalizer

print("skl2onnx", skl2onnx.__version__, "scikit-learn", sklearn.__version__, "onnxruntime", onnxruntime.__version__)


def in_onnx(model, x):
    """Return the first result of a fitted estimator's ONNX model."""
    made = skl2onnx.to_onnx(model, x[:1])
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


gaps = np.array([[1, np.nan], [3, 4]], np.float32)
imputer = SimpleImputer(add_indicator=True).fit(gaps)
imputed = imputer.transform(gaps), in_onnx(imputer, gaps)
print("SimpleImputer:", *(values.tolist() for values in imputed))
rows = np.array([[-4, 1], [2, 1]], np.float32)
normalizer = Normalizer("max").fit(rows)
normalized = normalizer.transform(rows), in_onnx(normalizer, rows)
print("Normalizer:", *(values.tolist() for values in normalized))
random = np.random.default_rng(0)
x = random.standard_normal((300, 2)).astype(np.float32)
classifier = SGDClassifier(loss="modified_huber", random_state=0).fit(x, np.digitize(x[:, 0], [-0.5, 0.5]))
labels = classifier.predict(x), in_onnx(classifier, x)
print("SGDClassifier: labels that differ of 300:", int((labels[0] != labels[1]).sum()))
if imputed[0].shape != (2, 3) or imputed[1].shape != (2, 2):
    sys.exit("the indicator's column is there now")
if normalized[0][0].tolist() != [-1, 0.25] or normalized[1][0].tolist() != [-4, 1]:
    sys.exit("the largest magnitude is taken now")
if (labels[0] != labels[1]).sum() < 30:
    sys.exit("the scores decide now")
PY

#!/usr/bin/env bash
# Nearest neighbours of scikit-learn with weights="distance" count for 1 / distance. In the model that sklearn-onnx
# makes of a regressor or a classifier they count alike: its graph has the weights' nodes, and feeds them negative
# distances, which the bound that keeps them from 0 makes equal. Close to a point of 10, between points of 0, the
# model gives 3.3 for scikit-learn's 9.8, and the other class. Weights "uniform" are right.
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
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

print("skl2onnx", skl2onnx.__version__, "scikit-learn", sklearn.__version__, "onnxruntime", onnxruntime.__version__)
points, targets = np.array([[0], [1], [2], [3]], np.float32), np.array([0, 10, 0, 0])
x = np.array([[0.01], [0.7], [1], [1.01], [2.9]], np.float32)
print("queries", x.ravel())
same = {}
for kind in (KNeighborsRegressor, KNeighborsClassifier):
    for weights in ("uniform", "distance"):
        model = kind(3, weights=weights).fit(points, targets)
        made = skl2onnx.to_onnx(model, points[:1])
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        ours = session.run(None, {session.get_inputs()[0].name: x})[0].ravel()
        same[kind, weights] = np.allclose(model.predict(x), ours, atol=1e-3)
        print(f"{kind.__name__}, {weights}: scikit-learn {model.predict(x).round(3)} ONNX {ours.round(3)}")
if any(equal != (weights == "uniform") for (_, weights), equal in same.items()):
    sys.exit("weights are followed now, or neighbours differ")
PY

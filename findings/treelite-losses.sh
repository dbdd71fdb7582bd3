#!/usr/bin/env bash
# Treelite reads trees of other libraries, for servers and for compiled models. Of scikit-learn's gradient boosting with
# loss="exponential" it gives sigmoid(sum) for probabilities, where scikit-learn has sigmoid(2 sum): 0.68 is 0.60. Of
# LightGBM with zero_as_missing it compares a 0 with the threshold, and goes down the other side of the tree. Both load
# without a word; the losses that are defaults are right, and LightGBM's linear trees are refused.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  treelite==4.8.1 scikit-learn==1.9.1 lightgbm==4.7.0
"$work/venv/bin/python" -W ignore - <<'PY'
import sys
from importlib.metadata import version

import lightgbm
import numpy as np
import treelite
from sklearn.ensemble import GradientBoostingClassifier

print(*(f"{p} {version(p)}" for p in ("treelite", "scikit-learn", "lightgbm")))
random = np.random.default_rng(0)
x = random.standard_normal((300, 4)).astype(np.float32)
x[np.abs(x) < 0.3] = 0
y = np.exp(x[:, 0]) + random.random(300)
classes = (x[:, 0] > 0).astype(int)


def boosted(loss):
    model = GradientBoostingClassifier(loss=loss, n_estimators=5, random_state=0).fit(x, classes)
    return model.predict_proba(x)[:, 1], treelite.gtil.predict(treelite.sklearn.import_model(model), x).ravel()


def light(**more):
    how = {"objective": "regression", "num_leaves": 7, "verbose": -1, **more}
    model = lightgbm.train(how, lightgbm.Dataset(x, y, params=how), 5)
    return model.predict(x), treelite.gtil.predict(treelite.frontend.from_lightgbm(model), x).ravel()


changed = []
for name, (own, read), right in (
    ("scikit-learn, log_loss", boosted("log_loss"), True),
    ("scikit-learn, exponential", boosted("exponential"), False),
    ("LightGBM", light(), True),
    ("LightGBM, zero_as_missing", light(zero_as_missing=True), False),
):
    worst = int(np.abs(own - read).argmax())
    apart = int((~np.isclose(own, read, rtol=1e-3)).sum())
    print(f"{name:26} {apart:3} of 300 differ; own {own[worst]:.4f} Treelite {read[worst]:.4f}")
    if (apart == 0) != right:
        changed.append(name)
if changed:
    sys.exit(f"others are right now: {changed}")
PY

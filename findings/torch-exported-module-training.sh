#!/usr/bin/env bash
# The module of an exported program says that it is in training, also where the model was exported
# after eval(), and its own eval() raises. So are the models that pt2e quantisation converts. A tool
# that asks `module.training` refuses them; what trains is in the operators' arguments alone.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0
"$work/venv/bin/python" - <<'PY'
import sys

import torch

print("torch", torch.__version__)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval()
x = torch.ones(2, 3)
module = torch.export.export(model, (x,)).module()
print("model.training", model.training, "module.training", module.training)
print("equal results:", torch.equal(module(x), model(x)))
try:
    module.eval()
    raised = False
except NotImplementedError as e:
    raised = True
    print("module.eval():", e)
sys.exit(0 if module.training and raised and torch.equal(module(x), model(x)) else 1)
PY

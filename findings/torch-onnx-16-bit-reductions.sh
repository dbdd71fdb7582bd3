#!/usr/bin/env bash
# torch.onnx.export converts the operand of a sum, a product, an extreme or a running sum of 16-bit
# floats to f32, and leaves the result there. The model is valid, and no warning says that its output
# has another type than the module's. A mean and an argument's maximum keep theirs.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  onnx==1.23.2 onnxscript==0.7.2
"$work/venv/bin/python" - 2>/dev/null <<'PY'
import sys

import onnx
import torch

print("torch", torch.__version__)
x = torch.randn(5, 8, dtype=torch.float16)


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


wrong = []
for name, function in {
    "sum": lambda v: v.sum(1), "prod": lambda v: v.prod(1), "amax": lambda v: v.amax(1),
    "cumsum": lambda v: v.cumsum(1), "mean": lambda v: v.mean(1), "max": lambda v: v.max(1)[0],
}.items():
    made = torch.onnx.export(Module(function), (x,), dynamo=True, verbose=False)
    onnx.checker.check_model(made.model_proto, full_check=True)
    kind = str(made.model.graph.outputs[0].dtype)
    print(f"{name}: eager {function(x).dtype}, exported {kind}")
    if kind != "FLOAT16":
        wrong.append(name)
if wrong != ["sum", "prod", "amax", "cumsum"]:
    sys.exit(f"results of another type now: {wrong}")
PY

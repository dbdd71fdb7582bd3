#!/usr/bin/env bash
# torch.onnx.export folds a BatchNorm into the Conv, ConvTranspose or Linear before it. With bf16
# weights the folded ones are f32: the exported node has a bf16 input beside f32 weights, which
# ONNX's type rules forbid, and the export warns of nothing. f16 is folded in f16, and without
# `optimize=True`, the default, nothing is folded and the model is valid.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  onnx==1.23.2 onnxscript==0.7.2
"$work/venv/bin/python" - 2>/dev/null <<'PY'
import sys

import onnx
import onnxscript
import torch
from torch import nn

print("torch", torch.__version__, "onnxscript", onnxscript.__version__)
found = {}
for dtype in (torch.float16, torch.bfloat16):
    for optimize in (True, False):
        net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16)).eval().to(dtype)
        made = torch.onnx.export(
            net, (torch.randn(5, 8, dtype=dtype),), dynamo=True, verbose=False, optimize=optimize
        )
        nodes = [(n.op_type, [str(i.dtype) for i in n.inputs]) for n in made.model.graph]
        try:
            onnx.checker.check_model(made.model_proto, full_check=True)
            verdict = "valid"
        except Exception as e:
            verdict = str(e).splitlines()[0]
        found[dtype, optimize] = verdict
        print(f"{dtype}, optimize={optimize}: {nodes}\n    {verdict}")
if [*found.values()].count("valid") != 3 or found[torch.bfloat16, True] == "valid":
    sys.exit("another answer than described")
PY

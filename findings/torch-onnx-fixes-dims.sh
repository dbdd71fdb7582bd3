#!/usr/bin/env bash
# torch.onnx.export decomposes operators after torch.export has checked dynamic dims. A
# decomposition that asks for a size as a Python number fixes that dim: the guard that the trace
# notes is checked by nobody. torch.bucketize is exported with the steps of a search among as many
# edges as the example has. The model's input still has a dynamic dim, and more edges give wrong
# buckets without a warning.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0
"$work/venv/bin/python" - "$work/model.onnx" 2>/dev/null <<'PY'
import sys

import onnx
import onnxruntime
import torch
from torch.export import Dim


class Buckets(torch.nn.Module):
    def forward(self, x, edges):
        return torch.bucketize(x, edges)


path = sys.argv[1]
x = torch.linspace(-1, 41, 7)
few, many = torch.arange(5.0), torch.arange(40.0)
torch.onnx.export(
    Buckets(), (x, few), path, dynamo=True, verbose=False,
    dynamic_shapes=(None, {0: Dim("count", min=2)}),
)
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
print("torch", torch.__version__)
print("inputs:", {i.name: i.shape for i in session.get_inputs()})
same = True
for edges in (few, many):
    wanted = torch.bucketize(x, edges)
    (found,) = session.run(None, {"x": x.numpy(), "edges": edges.numpy()})
    print(f"{len(edges)} edges: eager {wanted.tolist()}, exported {found.tolist()}")
    same = same and found.tolist() == wanted.tolist()
if same:
    sys.exit("the number of edges is dynamic now")
PY

#!/usr/bin/env bash
# torch.onnx.export translates operators by a library of functions. Some take arguments that they
# never read. The exported model is valid, checks, and computes something else, without a warning:
# scatter_reduce(reduce="mean") is exported as a sum, cross_entropy(label_smoothing=0.2) without the
# smoothing. Whoever compiles the export has no way to see what is missing.
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
import onnxscript
import torch
import torch.nn.functional as F


class Mean(torch.nn.Module):
    def forward(self, x, index, src):
        return x.scatter_reduce(0, index, src, "mean")


class Smoothed(torch.nn.Module):
    def forward(self, x, target):
        return F.cross_entropy(x, target, label_smoothing=0.2)


CASES = {
    "scatter_reduce(reduce='mean')": (
        Mean(),
        (torch.zeros(2), torch.tensor([0, 0, 1]), torch.tensor([3.0, 6.0, 5.0])),
    ),
    "cross_entropy(label_smoothing=0.2)": (
        Smoothed(),
        (torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0])),
    ),
}
print("torch", torch.__version__, "onnxscript", onnxscript.__version__)
path = sys.argv[1]
same = []
for name, (module, arguments) in CASES.items():
    torch.onnx.export(module, arguments, path, dynamo=True, verbose=False)
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    feeds = {n: a.numpy() for n, a in zip(names, arguments)}
    found = torch.from_numpy(session.run(None, feeds)[0])
    wanted = module(*arguments)
    print(name)
    print("  eager   ", wanted.flatten().tolist())
    print("  exported", found.flatten().tolist())
    if torch.allclose(found, wanted):
        same.append(name)
if same:
    sys.exit(f"translated now: {', '.join(same)}")
PY

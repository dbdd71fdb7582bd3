#!/usr/bin/env bash
# The remainder of integers has the divisor's sign in PyTorch and in Python: -7 % 3 is 2. In ExecuTorch's
# own kernels, which run what no delegate takes, it is C's: -1. For floats it is right, and so is the
# floor division beside it, so that (a // b) * b + a % b is no longer a. Positions that wrap around
# (`(i - 1) % n`) are negative on the phone alone. A power of int32 goes through f64, and saturates.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  executorch==1.5.1
cat > "$work/remainder.py" <<'PY'
import sys
import warnings
from importlib.metadata import version

import torch
from executorch.exir import to_edge
from executorch.runtime import Runtime

warnings.simplefilter("ignore")
print("executorch", version("executorch"), "torch", torch.__version__)
runtime = Runtime.get()


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def run(function, x):
    """Return a function's result in PyTorch, and in ExecuTorch without a delegate."""
    exported = torch.export.export(Model(function).eval(), (x,))
    program = runtime.load_program(to_edge(exported).to_executorch().buffer)
    [found] = program.load_method("forward").execute([x])
    return function(x).tolist(), found.tolist()


ints = torch.tensor([-7, 7, -1, 5], dtype=torch.int32)
rows = {
    "int32 % 3": run(lambda x: x % 3, ints),
    "int32 % -3": run(lambda x: x % -3, ints),
    "int32 // 3": run(lambda x: x // 3, ints),
    "float32 % 3": run(lambda x: x % 3, ints.float()),
    "int32 ** 2": run(lambda x: x**2, torch.tensor([46341, 65536], dtype=torch.int32)),
}
for name, (want, got) in rows.items():
    print(f"{name}: PyTorch {want}, ExecuTorch {got}")
seen = {name: got for name, (_, got) in rows.items()}
same = [want == got for name, (want, got) in rows.items() if name in ("int32 // 3", "float32 % 3")]
if seen["int32 % 3"] != [-1, 1, -1, 2] or seen["int32 % -3"] != [-1, 1, -1, 2] or not all(same):
    sys.exit("remainders have the divisor's sign now")
PY
"$work/venv/bin/python" "$work/remainder.py" 2> "$work/log" || { cat "$work/log"; exit 1; }

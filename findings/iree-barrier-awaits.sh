#!/usr/bin/env bash
# util.optimization_barrier keeps values apart for the optimizer. On tensors IREE keeps it until the
# program is bytecode, where it splits what a device is given: the host waits at each barrier for all
# that was asked before, and memory of each part is allocated alone. Two element-wise functions with a
# barrier between them wait twice, those with none once, for the same two launches.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check iree-base-compiler==3.13.0
"$work/venv/bin/python" - "$work" <<'PY'
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

work = Path(sys.argv[1])
PARTS = {
    "with a barrier": "%b = util.optimization_barrier %a : tensor<?xf32>",
    "without": "%b = flow.tensor.tie_shape %a : tensor<?xf32>{%n}",
}
found = {}
for kind, between in PARTS.items():
    (work / "m.mlir").write_text(f"""
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %t = flow.tensor.tie_shape %x : tensor<?xf32>{{%n}}
  %a = flow.dispatch.region -> (tensor<?xf32>{{%n}}) {{
    %y = arith.addf %t, %t : tensor<?xf32>
    flow.return %y : tensor<?xf32>
  }}
  {between}
  %u = flow.tensor.tie_shape %b : tensor<?xf32>{{%n}}
  %r = flow.dispatch.region -> (tensor<?xf32>{{%n}}) {{
    %y = arith.mulf %u, %u : tensor<?xf32>
    flow.return %y : tensor<?xf32>
  }}
  return %r : tensor<?xf32>
}}
""")
    text = subprocess.run(
        [str(work / "venv/bin/iree-compile"), "--iree-hal-target-device=hip",
         "--iree-rocm-target=gfx942", "--compile-to=hal", str(work / "m.mlir"), "-o", "-"],
        check=True, capture_output=True, text=True).stdout
    found[kind] = [len(re.findall(name, text)) for name in
                   (r"hal\.command_buffer\.dispatch", r"hal\.fence\.await", r"queue\.alloca")]
print(f"iree-base-compiler {version('iree-base-compiler')}")
for kind, (launches, waits, allocations) in found.items():
    print(f"{kind}: {launches} launches, {waits} waits of the host, {allocations} allocations")
(a, waits, _), (b, fewer, _) = found.values()
sys.exit(0 if a == b == 2 and waits > fewer else 1)
PY

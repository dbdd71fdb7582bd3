#!/usr/bin/env bash
# iree-run-module: numbers of --input are read by atoi and strtol. For i32, 1e3 is 1, 2.9 is 2, 010 is 8 and
# 5000000000 is 705032704, without a word; for i8, 300 is an error. iree-compile, of the same text as a
# constant in MLIR, refuses each.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import pathlib
import subprocess
import sys
import tempfile
from importlib.metadata import version

import iree._runtime_libs
import iree.compiler

print("iree-base-runtime", version("iree-base-runtime"))
run_module = next(pathlib.Path(iree._runtime_libs.__file__).parent.rglob("iree-run-module"))
TEXT = "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> { return %x : tensor<4xi32> }"
code = iree.compiler.compile_str(
    TEXT, target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=generic"]
)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "main.vmfb"
    path.write_bytes(code)

    def run(numbers):
        command = [run_module, f"--module={path}", "--function=main", "--device=local-sync"]
        done = subprocess.run([*command, f"--input={numbers}"], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()[-1]

    found = run("4xi32=1e3 2.9 010 5000000000")
print("4xi32=1e3 2.9 010 5000000000 is read as", found[1])
for number in ("1e3", "2.9", "5000000000"):
    try:
        iree.compiler.ir.Attribute.parse(f"{number} : i32", iree.compiler.ir.Context())
    except iree.compiler.ir.MLIRError as refused:
        print(f"MLIR on {number} : i32:", str(refused).splitlines()[1])
    else:
        sys.exit("MLIR reads such a number now")
if found != (0, "4xi32=1 2 8 705032704"):
    sys.exit("such numbers are others now")
PY

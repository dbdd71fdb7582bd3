#!/usr/bin/env bash
# iree-run-module --expected_output says SUCCESS where no digit is right: its tolerance is 1e-4, whatever
# the numbers are. A softmax over 20,000 words has probabilities of 5e-5: one that puts all words to 0
# passes.
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
import numpy as np

print("iree-base-runtime", version("iree-base-runtime"))
run_module = next(pathlib.Path(iree._runtime_libs.__file__).parent.rglob("iree-run-module"))
WORDS = 20_000
TEXT = f"func.func @main(%x: tensor<{WORDS}xf32>) -> tensor<{WORDS}xf32> {{ return %x : tensor<{WORDS}xf32> }}"
code = iree.compiler.compile_str(
    TEXT, target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=generic"]
)
scores = np.random.default_rng(0).uniform(-0.5, 0.5, WORDS)
right = (np.exp(scores) / np.exp(scores).sum()).astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder)
    (path / "main.vmfb").write_bytes(code)
    np.save(path / "right.npy", right)

    def compare(found):
        np.save(path / "found.npy", found)
        command = [run_module, f"--module={path / 'main.vmfb'}", "--function=main"]
        command += ["--device=local-sync", f"--input=@{path / 'found.npy'}"]
        command += [f"--expected_output=@{path / 'right.npy'}"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()[1][:40]

    zeros, backwards = compare(np.zeros_like(right)), compare(right[::-1])
print("largest of the right probabilities", right.max())
print("zeros in place of them     ", *zeros)
print("the same in reverse order  ", *backwards)
if zeros[0] != 0 or backwards[0] != 0:
    sys.exit("such results fail now")
PY

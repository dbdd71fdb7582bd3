#!/usr/bin/env bash
# iree-compile reads torch, StableHLO and TOSA and targets Vulkan, CUDA and Metal by default. A module
# of plain linalg for the CPU pays for all of them: each set of patterns is built by a walk over every
# registered op. Without those plugins a small module compiles in three quarters of the CPU time, to
# the same bytes. A compiler that makes many small programs loses a quarter of its time unseen.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check iree-base-compiler==3.13.0
cat > "$work/add.mlir" <<'MLIR'
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = arith.addf %x, %x : tensor<32xf32>
  return %y : tensor<32xf32>
}
MLIR
"$work/venv/bin/python" - "$work" <<'PY'
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

work = Path(sys.argv[1])
compiler = str(work / "venv/bin/iree-compile")
flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
         "--iree-llvmcpu-target-cpu=generic", "--mlir-disable-threading"]
unused = ("input_torch", "input_stablehlo", "input_tosa", "hal_target_cuda",
          "hal_target_metal_spirv", "hal_target_vulkan_spirv")
kinds = {"default": [], "without": [f"--iree-plugin=-{name}" for name in unused]}
seconds = {kind: [] for kind in kinds}
code = {}
for _ in range(7):  # alternately, the least of each: other programs disturb both
    for kind, more in kinds.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        made = work / "add.vmfb"
        subprocess.run([compiler, *flags, *more, str(work / "add.mlir"), "-o", str(made)], check=True)
        seconds[kind].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        code[kind] = made.read_bytes()
least = {kind: min(found) for kind, found in seconds.items()}
same = code["default"] == code["without"]
print(f"iree-base-compiler {version('iree-base-compiler')}")
print(f"{least['default']:.3f} CPU s by default, {least['without']:.3f} without {', '.join(unused)}; "
      f"the same bytes: {same}")
sys.exit(0 if same and least["without"] < 0.9 * least["default"] else 1)
PY

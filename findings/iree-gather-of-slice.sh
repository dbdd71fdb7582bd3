#!/usr/bin/env bash
# IREE for GPUs: elements at computed columns of x[:, 9:12], of 8 blocks of 15 rows, are loaded as
# if the blocks had 3 rows. The PTX is that of a whole 8x3x64 tensor that begins 2304 bytes further
# on: no instruction has the distance of blocks. IREE's code for CPUs reads the right elements.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
WORK=$work "$work/venv/bin/python" - <<'PY'
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

import iree.compiler
import iree.runtime
import numpy as np

SLICE = """
  %s = tensor.extract_slice %x[0, 9, 0] [8, 3, 64] [1, 1, 1]
      : tensor<8x15x64xf32> to tensor<8x3x64xf32>
"""
TEXT = """
func.func @main(%NAME: tensor<8xROWSx64xf32>, %columns: tensor<64xi64>) -> tensor<8x3x64xf32> {
  SLICE
  %e = tensor.empty() : tensor<8x3x64xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, r, c) -> (c)>, affine_map<(b, r, c) -> (b, r, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%columns : tensor<64xi64>) outs(%e : tensor<8x3x64xf32>) {
  ^bb0(%column: i64, %o: f32):
    %b = linalg.index 0 : index
    %r = linalg.index 1 : index
    %c = arith.index_cast %column : i64 to index
    %v = tensor.extract %s[%b, %r, %c] : tensor<8x3x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x3x64xf32>
  return %y : tensor<8x3x64xf32>
}
"""
sliced = TEXT.replace("NAME", "x").replace("ROWS", "15").replace("SLICE", SLICE)
whole = TEXT.replace("NAME", "s").replace("ROWS", "3").replace("SLICE", "")


def numbers_in_ptx(name, text):
    folder = Path(os.environ["WORK"]) / name
    iree.compiler.compile_str(
        text, input_type="none", target_backends=["cuda"],
        extra_args=["--iree-cuda-target=sm_89", f"--iree-hal-dump-executable-files-to={folder}"],
    )
    (ptx,) = folder.glob("*.ptx")
    lines = ptx.read_text().partition("{")[2].splitlines()
    code = [line for line in lines if re.match(r"\s+(add|mul|mad|shl|or|and)", line)]
    loads = [line for line in lines if "ld.global.b32" in line]
    return len(loads), {int(n) for line in code for n in re.findall(r", (\d+)", line)}


def on_cpu(text, *arguments):
    code = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="none",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.module.main(*arguments).to_host()


print("iree-base-compiler", version("iree-base-compiler"))
rng = np.random.default_rng(0)
x, columns = rng.random((8, 15, 64), np.float32), rng.integers(0, 64, 64)
right = bool(np.array_equal(on_cpu(sliced, x, columns), x[:, 9:12][:, :, columns]))
print("CPU: right elements:", right)
(loads, of_slice), (_, of_whole) = numbers_in_ptx("slice", sliced), numbers_in_ptx("whole", whole)
print("loads of a thread:", loads)
print("numbers in the PTX of x[:, 9:12]:      ", sorted(of_slice))
print("numbers in the PTX of a whole 8x3x64:  ", sorted(of_whole))
start, block = 9 * 64 * 4, 15 * 64
print("start of the slice in bytes:", start, "; distance of blocks:", block, "elements")
holds = right and loads == 4 and of_slice == of_whole | {start}
holds = holds and not {15, block, block * 4} & of_slice
print("Blocks of the slice are read as if they lay side by side:", holds)
sys.exit(not holds)
PY

#!/usr/bin/env bash
# A configuration of IREE's may pad the tile of a workgroup: 8 rows by 32 columns, two columns a thread,
# 32 of the depth in an iteration, for a matmul of 5 rows. With a depth of 64 the store of the results
# has a bound. With a depth of 8, which is one iteration, it has none: threads past row 5 store, too.
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
found = {}
for depth in (64, 8):
    a, b, c = (f"tensor<{dims}xf32>" for dims in (f"5x{depth}", f"{depth}x32", "5x32"))
    (work / "m.mlir").write_text(f"""
#tile = #iree_codegen.compilation_info<
  lowering_config = #iree_gpu.lowering_config<{{
    padding = [8, 32, 32], promote_operands = [0, 1], reduction = [0, 0, 32],
    thread = [1, 2, 0], workgroup = [8, 32, 0]}}>,
  translation_info = <pipeline = #iree_gpu.pipeline<TileAndFuse>
    workgroup_size = [128, 1, 1] subgroup_size = 32>>
func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
  %r = linalg.matmul {{compilation_info = #tile}}
    ins(%a, %b : {a}, {b}) outs(%start : {c}) -> {c}
  return %r : {c}
}}
""")
    files = work / str(depth)
    subprocess.run(
        [str(work / "venv/bin/iree-compile"), "--iree-hal-target-device=cuda",
         "--iree-cuda-target=sm_89", f"--iree-hal-dump-executable-files-to={files}",
         str(work / "m.mlir"), "-o", "/dev/null"], check=True)
    (ptx,) = files.glob("*.ptx")
    text = ptx.read_text()
    store = text.rindex("st.global")
    behind = text[text[:store].rindex("bar.sync"):store]
    found[depth] = re.findall(r"setp\.\S+\s+%p\d+, %r\d+, (\d+);\s+@%p\d+ bra", behind)
print(f"iree-base-compiler {version('iree-base-compiler')}")
for depth, bounds in found.items():
    said = f"threads past {bounds[0]} do not store" if bounds else "all 128 threads store"
    print(f"depth {depth}: {said}")
sys.exit(0 if found[64] and not found[8] else 1)
PY

"""Compiles models for AMD GPUs and counts the kernels in the files, next to the CPU build.

    python benchmarks/gpu.py MODEL.onnx... [--arch gfx942,gfx1100] [--spills]

No GPU is needed. For each model and architecture it prints kernels in code objects, dispatches of
one call, dispatches of the CPU build (packing launches of data tiling separately), kernels on the
host, and kernels with spilled registers. Exit code 0: every launched kernel is in a code object,
none on the host, and the counts equal the CPU build's; 1: not so; 2: a model did not compile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ARCHES = ("gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1201")

# one build in a process of its own: its memory goes back before the next starts
BUILD = """
import json, sys
from mgx_mlir.compiler.compile import compile
from mgx_mlir.targets.report import gpu_report
path, target, arch = sys.argv[1:4]
program = compile(path, target=target, arch=arch or None)
made = program.executable
calls = [n for f, names in made.dispatches.items() if f != "initializer" for n in names]
answer = {"dispatches": len(made.kernels), "packing": len(calls) - len(made.kernels),
          "at_load": len(made.dispatches.get("initializer", ())),
          "fused": len(program.kernels), "seconds": made.seconds, "flags": made.flag_set}
if target == "gpu":
    report = gpu_report(made.vmfb, made.dispatches)
    answer |= {"kernels": len(report.kernels), "on_host": report.on_host,
               "missing": report.missing,
               "spills": {k.name: [k.vgpr_spills, k.sgpr_spills, k.scratch]
                          for k in report.kernels if k.spills}}
print(json.dumps(answer))
"""


def build(path: Path, target: str, arch: str = "") -> dict[str, Any]:
    """One build's figures; `error` says why there are none."""
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, str(path), target, arch],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    if ran.returncode:
        return {"error": " | ".join(ran.stderr.strip().splitlines()[-3:])[-300:]}
    return json.loads(ran.stdout.splitlines()[-1])


def compare(path: Path, arches: list[str], spills: bool) -> int:
    """Print the rows of one model; 0, 1 or 2 as the command ends."""
    cpu = build(path, "cpu")
    if "error" in cpu:
        print(f"{path.stem}: cpu: {cpu['error']}", file=sys.stderr)
        return 2
    print(
        f"{path.stem:<22}{'cpu':<9}{'':>8}{cpu['dispatches']:>12}{cpu['packing']:>9}"
        f"{'':>9}{'':>8}{cpu['seconds']:>9.0f}", flush=True
    )  # fmt: skip
    status = 0
    for arch in arches:
        gpu = build(path, "gpu", arch)
        if "error" in gpu:
            print(f"{path.stem}: {arch}: {gpu['error']}", file=sys.stderr)
            status = 2
            continue
        print(
            f"{'':<22}{arch:<9}{gpu['kernels']:>8}{gpu['dispatches']:>12}{gpu['packing']:>9}"
            f"{gpu['on_host']:>9}{len(gpu['spills']):>8}{gpu['seconds']:>9.0f}", flush=True
        )  # fmt: skip
        for name, (vgprs, sgprs, scratch) in gpu["spills"].items() if spills else ():
            print(f"    {name}: {vgprs} vgprs, {sgprs} sgprs spilled, {scratch} B of scratch")
        if gpu["on_host"] or gpu["missing"] or gpu["dispatches"] != cpu["dispatches"]:
            status = max(status, 1)
    return status


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--arch", default=",".join(ARCHES), help="gfx names, comma-separated")
    parser.add_argument("--spills", action="store_true", help="name the kernels that spill")
    options = parser.parse_args(argv)
    for path in options.models:
        if not path.exists():
            print(f"error: no such model: {path}", file=sys.stderr)
            return 2
    print(
        f"{'model':<22}{'target':<9}{'kernels':>8}{'dispatches':>12}{'packing':>9}"
        f"{'on host':>9}{'spills':>8}{'seconds':>9}"
    )
    return max(compare(path, options.arch.split(","), options.spills) for path in options.models)


if __name__ == "__main__":
    sys.exit(main())

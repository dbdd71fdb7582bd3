"""What a cold compile costs on the cpu target: CPU seconds by stage, and peak memory.

    python benchmarks/compile_time.py resnet50.onnx bert_base.onnx --passes --json out.json

Each model is compiled in a process of its own, without the cache. CPU seconds stand on a busy
machine, which seconds of the clock do not. "start" is Python with the package imported; "IREE" is
the backend's processes with all their threads; memory is that of all processes at once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import run_measured, write_json  # noqa: E402

STAGES = ("start", "import", "passes", "lowering", "iree", "rest")

# runs in a process of its own: argv is the model
COMPILE = """
import json, resource, sys, time
import mgx_mlir
from mgx_mlir.compiler.compilation import Compilation
from mgx_mlir.rewrite import passes

def of(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime

def own():
    return of(resource.RUSAGE_SELF)

seconds = {"start": own()}
def timed(name, stage):
    def run(self, *args, **kw):
        start = own()
        try:
            return stage(self, *args, **kw)
        finally:
            seconds[name] = seconds.get(name, 0.0) + own() - start
    return run

for name, stage in {"import": "read", "passes": "optimize", "lowering": "lower"}.items():
    setattr(Compilation, stage, timed(name, getattr(Compilation, stage)))

by_pass, run_pass, depth = {}, passes.run_pass, 0
def timed_pass(step, module):
    global depth
    start, depth = own(), depth + 1
    try:
        return run_pass(step, module)
    finally:
        depth -= 1
        if not depth:
            by_pass[str(step)] = by_pass.get(str(step), 0.0) + own() - start
passes.run_pass = timed_pass

program = mgx_mlir.compile(sys.argv[1], target="cpu", threads=1)
from mgx_mlir.targets.child import shared_compiler
shared_compiler().close()
seconds["rest"] = own() - sum(seconds.values())
seconds["iree"] = of(resource.RUSAGE_CHILDREN)
stats = program.stats
print(json.dumps({
    "seconds": seconds, "passes": by_pass, "kernels": len(program.kernels),
    "iree_peak": stats.iree_peak_memory,
    "own_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def compiled(model: Path) -> dict[str, Any]:
    """Compile in a fresh process: CPU seconds by stage and by pass, kernels, peaks in bytes."""
    ran = run_measured(
        [sys.executable, "-c", COMPILE, str(model.resolve())],
        environment={"MGX_CACHE": "0", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""},
        cwd=ROOT,
    )
    if ran.code:
        raise SystemExit(f"error: {model.name} does not compile\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1]) | {"peak": ran.peak, "wall": ran.seconds}


def row(name: str, found: dict[str, Any]) -> str:
    """A model's figures as a row of Markdown."""
    seconds = found["seconds"]
    cells = [f"{seconds[stage]:.1f}" for stage in STAGES]
    total = f"**{sum(seconds.values()):.1f}**"
    return "| " + " | ".join([name, *cells, total, f"{found['peak'] / 1e6:.0f}"]) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, help="ONNX files")
    parser.add_argument("--passes", action="store_true", help="the longest passes of each")
    parser.add_argument("--json", type=Path, help="write all figures to a file")
    arguments = parser.parse_args(argv)
    print("| model | " + " | ".join(STAGES) + " | all | peak, MB |")
    print("|---|" + "---|" * (len(STAGES) + 2))
    all_found = {}
    for model in arguments.models:
        all_found[model.stem] = found = compiled(model)
        print(row(model.stem, found), flush=True)
        if arguments.passes:
            longest = sorted(found["passes"].items(), key=lambda p: -p[1])
            print("   ", ", ".join(f"{name} {s:.2f}" for name, s in longest[:12]), flush=True)
        if arguments.json is not None:
            write_json(arguments.json, all_found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

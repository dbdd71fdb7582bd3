"""What a cold compile costs on the cpu target: CPU seconds by stage, and peak memory.

    python benchmarks/compile_time.py resnet50.onnx bert_base.onnx --passes --json out.json
    python benchmarks/compile_time.py resnet50.onnx --engines onnxruntime openvino

Each model is compiled in a process of its own, without the cache. CPU seconds stand on a busy
machine, which seconds of the clock do not. "start" is Python with the package imported; "IREE" is
the backend's processes with all their threads; memory is that of all processes at once. With
--engines each engine of `engines.py` is imported, takes the model and makes its first call in a
process of its own: seconds of the clock and of CPU, and peak memory. inductor takes models by the
names of `models.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.engines import ENGINES  # noqa: E402
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

# runs in a process of its own: argv is the engine, the model, and its inputs
FIRST_CALL = """
import json, resource, sys, time
from pathlib import Path
import numpy
from benchmarks.engines import ENGINES
inputs = dict(numpy.load(sys.argv[3]))
def cpu():
    of = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in of)
start, used = time.perf_counter(), cpu()
path = Path(sys.argv[2])
call = ENGINES[sys.argv[1]](path, inputs, 1, path.stem)
ready = time.perf_counter()
call()
end = time.perf_counter()
child = sys.modules.get("mgx_mlir.targets.child")
if child is not None:
    child.shared_compiler().close()
print(json.dumps({"compile": ready - start, "call": end - ready, "cpu": cpu() - used}))
"""
ENVIRONMENT = {"MGX_CACHE": "0", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}


def first_call(engine: str, model: Path, inputs: Path, folder: Path) -> dict[str, float]:
    """Import an engine, compile and call once in a fresh process: seconds, and peak bytes."""
    arguments = [engine, str(model.resolve()), str(inputs)]
    ran = run_measured(
        [sys.executable, "-c", FIRST_CALL, *arguments],
        environment={**ENVIRONMENT, "TORCHINDUCTOR_CACHE_DIR": str(folder / engine)},
        cwd=ROOT,
    )
    if ran.code:
        raise SystemExit(f"error: {engine} does not run {model.name}\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1]) | {"peak": ran.peak}


def engines_table(models: Sequence[Path], engines: Sequence[str]) -> dict[str, Any]:
    """Print a row for each model and engine; return the figures."""
    from benchmarks.oracle import inputs_for

    print("| model | engine | import and compile, s | first call, s | CPU s | peak, MB |")
    print("|---|---|---|---|---|---|")
    all_found: dict[str, Any] = {}
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            inputs = Path(folder, "inputs.npz")
            np.savez(inputs, **inputs_for(model))
            for engine in engines:
                found = first_call(engine, model, inputs, Path(folder))
                all_found.setdefault(model.stem, {})[engine] = found
                seconds = " | ".join(f"{found[k]:.2f}" for k in ("compile", "call", "cpu"))
                peak = f"{found['peak'] / 1e6:.0f}"
                print(f"| {model.stem} | {engine} | {seconds} | {peak} |", flush=True)
    return all_found


def compiled(model: Path) -> dict[str, Any]:
    """Compile in a fresh process: CPU seconds by stage and by pass, kernels, peaks in bytes."""
    ran = run_measured(
        [sys.executable, "-c", COMPILE, str(model.resolve())],
        environment=ENVIRONMENT,
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
    parser.add_argument(
        "--engines", nargs="+", choices=sorted(ENGINES), help="compare import, compile, first call"
    )
    arguments = parser.parse_args(argv)
    if arguments.engines:
        figures = engines_table(arguments.models, arguments.engines)
        if arguments.json is not None:
            write_json(arguments.json, figures)
        return 0
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

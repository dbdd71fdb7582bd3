"""Cost of a cold compile on the cpu target: CPU seconds by stage, and peak memory.

    python benchmarks/compile_time.py resnet50.onnx bert_base.onnx --passes --json out.json
    python benchmarks/compile_time.py resnet50.onnx --workers 1 2 16
    python benchmarks/compile_time.py resnet50.onnx --engines onnxruntime openvino

Each model is compiled in its own process, without the cache. CPU seconds are valid on a busy
machine, unlike wall time. "start" is Python with the package imported; "IREE" is IREE's processes
with all their threads; memory is the peak sum over all processes. --workers estimates the wall time
on an idle machine with that many workers, from the caller's CPU time and the CPU time of each
request to a worker. A request begins no earlier than the caller made it, and the first free worker
takes the next one. With --engines each engine of `engines.py` is imported, takes the model and
makes its first call in a process of its own: seconds of the clock and of CPU, and peak memory.
inductor takes models by the names of `models.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.engines import ENGINES  # noqa: E402
from benchmarks.measure import run_measured, write_json  # noqa: E402

Figures: TypeAlias = tuple[dict[str, Any], list[str]]  # the figures, and the lines of their table
KERNELS = ("kernels", "library")  # requests to workers that compile kernels
STAGES = ("start", "import", "passes", "lowering", "iree", "rest")

# runs in its own process: argv is the model
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

from mgx_mlir.targets.worker_pool import Pool

made, begun, requests = {}, {}, []  # requests: kind, caller's time, worker's seconds
submit, begin, end = Pool.submit, Pool.begin, Pool.end
def used(worker):
    with open(f"/proc/{worker.process.pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # ticks of 10 ms
def noted_submit(self, header, payload, reader):
    made[id(header)] = own()
    submit(self, header, payload, reader)
def noted_begin(self, worker, header, payload=b""):
    begun[worker] = header["kind"], made.get(id(header), own()), used(worker)
    begin(self, worker, header, payload)
def noted_end(self, worker):
    kind, at, before = begun[worker]
    reply = end(self, worker)
    requests.append([kind, at, used(worker) - before])
    return reply
Pool.submit, Pool.begin, Pool.end = noted_submit, noted_begin, noted_end

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
requests.sort(key=lambda r: r[1])
seconds["rest"] = own() - sum(seconds.values())
seconds["iree"] = of(resource.RUSAGE_CHILDREN)
stats = program.stats
print(json.dumps({
    "seconds": seconds, "passes": by_pass, "kernels": len(program.kernels), "requests": requests,
    "iree_peak": stats.iree_peak_memory,
    "own_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""

# runs in its own process: argv is the engine, the model, and its inputs
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


class Table:
    """A Markdown table, printed row by row; `lines` has all rows."""

    def __init__(self, head: Sequence[str]) -> None:
        self.lines: list[str] = []
        self.add(head)
        self._line("|" + "---|" * len(head))

    def add(self, cells: Sequence[str]) -> None:
        """Print a row."""
        self._line("| " + " | ".join(cells) + " |")

    def _line(self, text: str) -> None:
        self.lines.append(text)
        print(text, flush=True)


def write_part(page: Path, part: str, lines: Sequence[str]) -> None:
    """Write a table into a page, between two comments with its name."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, found, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    if not found or end not in rest:
        raise SystemExit(f"error: {page} has no lines '{begin}' and '{end}'")
    page.write_text("\n".join([before + begin, *lines, end + after]))


def first_call(engine: str, model: Path, inputs: Path, folder: Path) -> dict[str, float]:
    """Import an engine, compile and call once in a fresh process; return seconds and peak bytes."""
    arguments = [engine, str(model.absolute()), str(inputs)]
    ran = run_measured(
        [sys.executable, "-c", FIRST_CALL, *arguments],
        environment={**ENVIRONMENT, "TORCHINDUCTOR_CACHE_DIR": str(folder / engine)},
        cwd=ROOT,
    )
    if ran.code:
        raise SystemExit(f"error: {engine} does not run {model.name}\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1]) | {"peak": ran.peak}


ENGINES_HEAD = ("model", "engine", "import and compile, s", "first call, s", "CPU s", "peak, MB")


def engine_row(model: str, engine: str, found: dict[str, float]) -> list[str]:
    """A model's figures with an engine as the cells of a table."""
    seconds = [f"{found[k]:.2f}" for k in ("compile", "call", "cpu")]
    return [model, engine, *seconds, f"{found['peak'] / 1e6:.0f}"]


def engines_table(models: Sequence[Path], engines: Sequence[str]) -> Figures:
    """Print a row for each model and engine; return the figures."""
    from benchmarks.oracle import inputs_for

    table = Table(ENGINES_HEAD)
    all_found: dict[str, Any] = {}
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            inputs = Path(folder, "inputs.npz")
            arrays: dict[str, Any] = dict(inputs_for(model))
            np.savez(inputs, **arrays)
            for engine in engines:
                found = first_call(engine, model, inputs, Path(folder))
                all_found.setdefault(model.stem, {})[engine] = found
                table.add(engine_row(model.stem, engine, found))
    return all_found, table.lines


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


def modelled(found: dict[str, Any], workers: int) -> tuple[float, float]:
    """Return estimated seconds of the kernels' part, and of the whole compile, with so many
    workers.

    The kernels' part is from the first library that the caller makes to the end of the last one.
    """
    free = [0.0] * workers
    asked = [r for r in found["requests"] if r[0] in KERNELS]
    for _, at, seconds in asked:
        first = min(range(workers), key=free.__getitem__)
        free[first] = max(free[first], at) + seconds
    ends = max(free)
    begins = min((at for kind, at, _ in asked if kind == "library"), default=ends)
    host = sum(seconds for kind, _, seconds in found["requests"] if kind not in KERNELS)
    caller = sum(s for stage, s in found["seconds"].items() if stage != "iree")
    return ends - begins, max(caller, ends) + host


def workers_table(models: Sequence[Path], counts: Sequence[int]) -> Figures:
    """Print estimated seconds for each number of workers; return the figures."""
    heads = [f"{part} with {n}, s" for part in ("kernels", "compile") for n in counts]
    table = Table(("model", "libraries", "their CPU s", "longest", *heads))
    all_found: dict[str, Any] = {}
    for model in models:
        all_found[model.stem] = found = compiled(model)
        table.add(workers_row(model.stem, found, counts))
    return all_found, table.lines


def workers_row(name: str, found: dict[str, Any], counts: Sequence[int]) -> list[str]:
    """A model's libraries, and its seconds with each count of workers, as cells."""
    libraries = [s for kind, _, s in found["requests"] if kind == "library"]
    parts = [modelled(found, n) for n in counts]
    cells = [f"{sum(libraries):.1f}", f"{max(libraries, default=0.0):.2f}"]
    cells += [f"{part[i]:.1f}" for i in (0, 1) for part in parts]
    return [name, str(len(libraries)), *cells]


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
    parser.add_argument("--workers", nargs="+", type=int, help="the clock by a model of the phases")
    parser.add_argument("--page", type=Path, help="write the table of these two into a page")
    arguments = parser.parse_args(argv)
    if arguments.engines or arguments.workers:
        part = "engines" if arguments.engines else "workers"
        measure: Any = engines_table if arguments.engines else workers_table
        figures, lines = measure(arguments.models, arguments.engines or arguments.workers)
        if arguments.json is not None:
            write_json(arguments.json, figures)
        if arguments.page is not None:
            write_part(arguments.page, part, lines)
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

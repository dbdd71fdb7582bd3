"""Times the cpu target against onnxruntime, and other engines, on ONNX models.

    python benchmarks/cpu.py resnet50 path/to/model.onnx --threads 1 --json out.json
    python benchmarks/cpu.py bert_base --engines mgx,mgx-bf16,openvino,openvino-default,inductor
    python benchmarks/cpu.py bert_base --dynamic --at batch=1,sequence=64 --at batch=4,sequence=128

MODEL is a file, or a name of benchmarks/models.py (made on first use, which needs torch). All
engines run in one process, numpy in and numpy out, in separate blocks with pauses between them. The
figures are medians over blocks, measured until the ratios are known to 5 %. With one thread CPU
time is compared. Only rounds in which all engines had their cores count, and a row needs six of
them. Compile time and memory are measured in a separate process, with an empty cache. With
--dynamic a model is compiled once with dynamic dims and called at each size of --at. Exit code 1 if
a row is wrong or not valid.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.engines import ENGINES, ERROR_LIMIT, ERROR_LIMITS, Call  # noqa: E402
from benchmarks.measure import run_measured, write_json  # noqa: E402
from benchmarks.oracle import inputs_for, session, worst_error  # noqa: E402
from mgx_mlir.debug.engine_times import time_engines  # noqa: E402

TIE = 0.06  # repeated runs of one engine differ by this much


@dataclass(frozen=True)
class Figure:
    """One engine on one model; `ratio` is to onnxruntime, `low` to `high` hold it with 95 %."""

    engine: str
    ms: float
    ratio: float
    low: float
    high: float
    error: float

    @property
    def right(self) -> bool:
        return self.error < ERROR_LIMITS.get(self.engine, ERROR_LIMIT)


@dataclass(frozen=True)
class Row:
    """The figures of one model, and of one size of its dynamic dims; memory in MB."""

    model: str
    size: str
    threads: int
    onnxruntime_ms: float
    figures: list[Figure]
    failed: dict[str, str]  # engines that did not take the model, and why
    valid: bool
    clock: str
    valid_rounds: int
    rounds: int
    compile_s: float
    compile_mb: float
    stats: dict[str, Any]

    @property
    def ok(self) -> bool:
        ours = [f for f in self.figures if f.engine.startswith("mgx")]
        return self.valid and all(f.right for f in ours) and "mgx" not in self.failed


COMPILE_ONLY = """
import json, sys, time
import mgx_mlir
start = time.perf_counter()
program = mgx_mlir.compile(sys.argv[1], target="cpu", threads=int(sys.argv[2]))
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "stats": program.stats.known()}, default=str))
"""


def compile_apart(path: Path, threads: int, cache: str) -> dict[str, Any]:
    """Compile in a fresh process into `cache`; return seconds, stats, peak memory of all
    processes.
    """
    ran = run_measured(
        [sys.executable, "-c", COMPILE_ONLY, str(path), str(threads)],
        environment={"MGX_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    if ran.code:
        raise SystemExit(f"error: {path.name} does not compile\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1]) | {"peak": ran.peak}


def measure(
    path: Path,
    name: str,
    sizes: list[dict[str, int]],
    engines: list[str],
    options: argparse.Namespace,
) -> list[Row]:
    """Compile in a separate process, then compare all engines here, at each size."""
    with tempfile.TemporaryDirectory(prefix="mgx-bench-") as cache:
        compiled = compile_apart(path, options.threads, cache)
        os.environ["MGX_CACHE_DIR"] = cache
        return [_measured(path, name, size, engines, options, compiled) for size in sizes]


def _measured(
    path: Path,
    name: str,
    size: dict[str, int],
    engines: list[str],
    options: argparse.Namespace,
    compiled: dict[str, Any],
) -> Row:
    inputs = inputs_at(path, size)
    calls: dict[str, Call] = {}
    failed: dict[str, str] = {}
    for engine in ["onnxruntime", *engines]:
        try:
            made = ENGINES[engine](path, inputs, options.threads, name)
            made()
        except Exception as error:  # other engines may refuse a model with any exception
            failed[engine] = f"{type(error).__name__}: {error}"[:300]
        else:
            calls[engine] = made
    wanted = calls["onnxruntime"]()
    errors = {engine: worst_error(call(), wanted) for engine, call in calls.items()}
    clock = "cpu" if options.threads == 1 else "wall"
    times = time_engines(calls, clock=clock, rounds=options.rounds, block=options.seconds)
    figures: list[Figure] = []
    for engine in calls:
        if engine != "onnxruntime":
            ratio, ms = times.ratio(engine, "onnxruntime"), times.seconds(engine) * 1e3
            figures.append(Figure(engine, ms, ratio.value, ratio.low, ratio.high, errors[engine]))
    return Row(
        model=path.stem,
        size=" ".join(f"{symbol}={extent}" for symbol, extent in size.items()),
        threads=options.threads,
        onnxruntime_ms=times.seconds("onnxruntime") * 1e3,
        figures=figures,
        failed=failed,
        valid=not times.too_busy,
        clock=clock,
        valid_rounds=len(times.rounds),
        rounds=times.all_rounds,
        compile_s=compiled["seconds"],
        compile_mb=compiled["peak"] / 1e6,
        stats=compiled["stats"],
    )


def inputs_at(path: Path, size: dict[str, int]) -> dict[str, np.ndarray]:
    """The model's inputs, repeated or cut to the extents of its symbols."""
    oracle = session(path)
    inputs = inputs_for(path, oracle)
    for value in oracle.get_inputs():
        for axis, symbol in enumerate(value.shape):
            if symbol in size:
                array = inputs[value.name]
                at = np.arange(size[symbol]) % array.shape[axis]
                inputs[value.name] = np.ascontiguousarray(np.take(array, at, axis))
    return inputs


def model_path(name: str, folder: Path, exporter: str, dynamic: bool) -> Path:
    """Return a file as given, or the export of a named model under `folder`, made if missing."""
    if name.endswith(".onnx") or os.sep in name:
        path = Path(name)
        if not path.exists():
            raise SystemExit(f"error: no such model: {path}")
        return path
    path = folder / f"{name}_{exporter}{'_dynamic' if dynamic else ''}.onnx"
    if not path.exists():
        command = [sys.executable, str(ROOT / "benchmarks/models.py"), name, "--out", str(folder)]
        # torch stays out of this process, because it has its own thread pool
        command += ["--exporter", exporter, *(["--dynamic"] if dynamic else [])]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode or not path.exists():
            raise SystemExit(
                f"error: cannot make {path.name}\n{made.stderr.strip()[-1500:]}\n"
                "note: pip install '.[bench]', or give the path of a model"
            )
    return path


def show(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="time by onnxruntime's, numpy to numpy (lower is better)")
    engines = list(dict.fromkeys(f.engine for row in rows for f in row.figures))
    columns = ("model", "thr", "ort ms", *engines, "interval", "rounds", "error")
    for name in (*columns, "compile s", "compile MB"):
        table.add_column(name, justify="left" if name == "model" else "right", no_wrap=True)
    for row in rows:
        found = {f.engine: f for f in row.figures}
        ours = found.get("mgx")
        table.add_row(
            f"{row.model} {row.size}".strip(),
            str(row.threads),
            f"{row.onnxruntime_ms:.2f}",
            *(_cell(row, found.get(engine)) for engine in engines),
            f"{ours.low:.2f}-{ours.high:.2f}" if ours else "-",
            f"{row.valid_rounds}/{row.rounds}",
            f"{ours.error:.1e}" + ("" if ours.right else " WRONG") if ours else "-",
            f"{row.compile_s:.1f}",
            f"{row.compile_mb:.0f}",
        )
    Console(width=max(170, Console().width)).print(table)
    for row in rows:
        for engine, why in row.failed.items():
            print(f"{row.model}: {engine}: {why}")
    if not all(row.valid for row in rows):
        print("not valid: other programs used the cores")


def _cell(row: Row, figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if not row.valid:
        return "not valid"
    tie = " tie" if abs(figure.ratio - 1) < TIE else ""
    return f"{figure.ratio:.2f}{tie}" + ("" if figure.right else f" off {figure.error:.0e}")


def plot(rows: list[Row], path: Path) -> None:
    """Draw each engine's ratio on each model as bars; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    engines = list(dict.fromkeys(f.engine for row in rows for f in row.figures))
    figure, axes = plt.subplots(figsize=(10, 0.5 + 0.5 * len(rows)))
    for number, engine in enumerate(engines):
        ratios = [next((f.ratio for f in r.figures if f.engine == engine), 0.0) for r in rows]
        height = 0.8 / len(engines)
        at = [i + height * (number - (len(engines) - 1) / 2) for i in range(len(rows))]
        axes.barh(at, ratios, height, label=engine)
    axes.set_yticks(range(len(rows)), [f"{r.model} {r.size}" for r in rows])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time by onnxruntime's")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def sizes_of(given: list[str]) -> list[dict[str, int]]:
    """Parse [batch=1,sequence=64, ...] to sizes; one empty size without any."""
    pairs = [[part.split("=") for part in one.split(",")] for one in given]
    return [{symbol: int(extent) for symbol, extent in one} for one in pairs] or [{}]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--engines", default="mgx", help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
    parser.add_argument("--seconds", type=float, default=0.3, help="of one engine in one round")
    parser.add_argument("--exporter", choices=("dynamo", "script"), default="dynamo")
    parser.add_argument(
        "--dynamic", action="store_true", help="named models with their dims dynamic"
    )
    parser.add_argument("--at", action="append", default=[], help="batch=1,sequence=64: a size")
    parser.add_argument(
        "--models-dir", type=Path, default=ROOT / "build/models", help="where named models are kept"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--history", type=Path, help="a file to which the rows are added")
    parser.add_argument("--plot", type=Path, help="a .svg or .png of the ratios")
    options = parser.parse_args(argv)
    engines = [e for e in options.engines.split(",") if e != "onnxruntime"]
    unknown = [e for e in engines if e not in ENGINES]
    if unknown:
        parser.error(f"expected engines of {', '.join(ENGINES)}, got {', '.join(unknown)}")
    rows: list[Row] = []
    for name in options.models:
        path = model_path(name, options.models_dir, options.exporter, options.dynamic)
        made = measure(path, name, sizes_of(options.at), engines, options)
        rows += made
        show(made) if len(options.models) > 1 else None
    show(rows)
    content = [asdict(row) for row in rows]
    if options.json:
        write_json(options.json, content)
    if options.history:
        with open(options.history, "a") as history:
            date = datetime.now(timezone.utc).isoformat(timespec="seconds")
            history.write(json.dumps({"date": date, "rows": content}, default=str) + "\n")
    if options.plot:
        plot(rows, options.plot)
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())

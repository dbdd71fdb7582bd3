"""Times the cpu target against onnxruntime on ONNX models.

    python benchmarks/cpu.py resnet50 path/to/model.onnx --threads 1 --json out.json

MODEL is a file, or a name of benchmarks/models.py (made on first use, which needs torch). Both
engines run in one process, numpy in and numpy out, in interleaved rounds; the figures are medians
over rounds of the best call in each. Only rounds in which both engines got their cores count, and
a row with fewer than half of them is not valid. Compiling is timed and its memory measured in a
process of its own, with an empty cache. Exit code 1 if a row is wrong or not valid.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import interleave, run_measured, valid_rounds, write_json  # noqa: E402
from benchmarks.oracle import inputs_for, session, worst_error  # noqa: E402

ERROR_LIMIT = 1e-4
TIE = 0.06  # repeated runs of one engine differ by this much


@dataclass(frozen=True)
class Row:
    """The figures of one model; times in ms, memory in MB."""

    model: str
    threads: int
    onnxruntime_ms: float
    mgx_ms: float
    ratio: float
    cpu_ratio: float  # by process CPU time over all rounds: stands on a busy machine, 1 thread only
    valid_rounds: int
    rounds: int
    error: float
    compile_s: float
    compile_mb: float
    stats: dict[str, Any]

    @property
    def valid(self) -> bool:
        return 2 * self.valid_rounds >= self.rounds

    @property
    def ok(self) -> bool:
        return self.valid and self.error < ERROR_LIMIT


COMPILE_ONLY = """
import json, sys, time
import mgx_mlir
start = time.perf_counter()
program = mgx_mlir.compile(sys.argv[1], target="cpu", threads=int(sys.argv[2]))
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "stats": program.stats.known()}, default=str))
"""


def compile_apart(path: Path, threads: int, cache: str) -> dict[str, Any]:
    """Compile in a fresh process into `cache`: seconds, stats, peak memory of all processes."""
    ran = run_measured(
        [sys.executable, "-c", COMPILE_ONLY, str(path), str(threads)],
        environment={"MGX_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    if ran.code:
        raise SystemExit(f"error: {path.name} does not compile\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1]) | {"peak": ran.peak}


def measure(path: Path, threads: int, rounds: int, seconds: float) -> Row:
    """One row: compile apart, then both engines against each other here."""
    with tempfile.TemporaryDirectory(prefix="mgx-bench-") as cache:
        compiled = compile_apart(path, threads, cache)
        os.environ["MGX_CACHE_DIR"] = cache
        import mgx_mlir

        program = mgx_mlir.compile(str(path), target="cpu", threads=threads)
        oracle = session(path, threads)
        inputs = inputs_for(path, oracle)
        error = worst_error(program.run(inputs), oracle.run(None, inputs))
        times = interleave(
            {"ort": lambda: oracle.run(None, inputs), "mgx": lambda: program.run(inputs)},
            rounds,
            seconds,
        )
    valid = valid_rounds(times, threads)
    counted = valid or list(range(rounds))
    everything = list(range(rounds))
    ort, mgx = times["ort"].wall(counted), times["mgx"].wall(counted)
    return Row(
        model=path.stem,
        threads=threads,
        onnxruntime_ms=ort * 1e3,
        mgx_ms=mgx * 1e3,
        ratio=mgx / ort,
        cpu_ratio=times["mgx"].cpu(everything) / times["ort"].cpu(everything),
        valid_rounds=len(valid),
        rounds=rounds,
        error=error,
        compile_s=compiled["seconds"],
        compile_mb=compiled["peak"] / 1e6,
        stats=compiled["stats"],
    )


def model_path(name: str, folder: Path, exporter: str) -> Path:
    """A file as given, or the export of a named model under `folder`, made where it is missing."""
    if name.endswith(".onnx") or os.sep in name:
        path = Path(name)
        if not path.exists():
            raise SystemExit(f"error: no such model: {path}")
        return path
    path = folder / f"{name}_{exporter}.onnx"
    if not path.exists():
        command = [sys.executable, str(ROOT / "benchmarks/models.py"), name, "--out", str(folder)]
        # torch stays out of this process: it brings a thread pool of its own
        made = subprocess.run([*command, "--exporter", exporter], capture_output=True, text=True)
        if made.returncode or not path.exists():
            raise SystemExit(
                f"error: cannot make {path.name}\n{made.stderr.strip()[-1500:]}\n"
                "note: pip install '.[bench]', or give the path of a model"
            )
    return path


def show(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="cpu target against onnxruntime, numpy to numpy (lower ratio is better)")
    columns = ("model", "thr", "ort ms", "mgx ms", "ratio", "cpu ratio", "rounds", "error")
    for name in (*columns, "compile s", "compile MB"):
        table.add_column(name, justify="left" if name == "model" else "right", no_wrap=True)
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.valid else "not valid"
        if row.valid and abs(row.ratio - 1) < TIE:
            ratio += " tie"
        table.add_row(
            row.model,
            str(row.threads),
            f"{row.onnxruntime_ms:.2f}",
            f"{row.mgx_ms:.2f}",
            ratio,
            f"{row.cpu_ratio:.2f}" if row.threads == 1 else "-",
            f"{row.valid_rounds}/{row.rounds}",
            f"{row.error:.1e}" + ("" if row.error < ERROR_LIMIT else " WRONG"),
            f"{row.compile_s:.1f}",
            f"{row.compile_mb:.0f}",
        )
    Console(width=max(140, Console().width)).print(table)
    if not all(row.valid for row in rows):
        print("not valid: an engine got under 80 % of its cores in over half of the rounds")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one engine in one round")
    parser.add_argument("--exporter", choices=("dynamo", "script"), default="dynamo")
    parser.add_argument(
        "--models-dir", type=Path, default=ROOT / "build/models", help="where named models are kept"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    rows = []
    for name in options.models:
        path = model_path(name, options.models_dir, options.exporter)
        rows.append(measure(path, options.threads, options.rounds, options.seconds))
        show(rows[-1:]) if len(options.models) > 1 else None
    show(rows)
    if options.json:
        content = [asdict(row) | {"valid": row.valid} for row in rows]
        write_json(options.json, content)
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())

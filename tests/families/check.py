"""Compiles stored models for the CPU and compares them with onnxruntime; prints a row for each.

    python -m tests.families.check DIR [PATTERN] [--json ROWS] [--jobs 2]

DIR holds what `zoo.families.export` and `zoo.families.quantised` write.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.oracle import ort_session

LIMIT = 1e-4  # max|a-b| / max|b| of each output
SECONDS = 600


@dataclass
class Row:
    """The outcome of one model: the worst error over its outputs and sizes, or the failure."""

    name: str
    error: float = float("inf")
    failure: str = ""
    kernels: int = 0
    import_s: float = 0.0
    compile_s: float = 0.0
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.failure and self.error <= limit_of(self.name)


def limit_of(name: str) -> float:
    """Quantised models: one step of 8 bits, for a value between two steps may fall to either."""
    return 1 / 127 if re.search(r"qdq|qoperator|dynamic_int8", name) else LIMIT


def reference(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    # pairs of Q and DQ as written: its fusions round at other places
    optimised = not re.search(r"qdq|qoperator|dynamic_int8", path.name)
    session = ort_session(path, optimised=optimised)
    return session.run(None, {i.name: inputs[i.name] for i in session.get_inputs()})


def error_of(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The worst error of the outputs, relative to each one's largest value; integers are equal."""
    if len(got) != len(wanted):
        return float("inf")
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if b.dtype.kind in "iub":
            worst = max(worst, 0.0 if np.array_equal(a, b) else float("inf"))
        elif b.size:
            if not np.isfinite(b).all():
                raise ValueError("the oracle's output is not finite")
            difference = np.abs(a.astype(np.float64) - b).max()
            if not np.isfinite(difference):
                return float("inf")
            worst = max(worst, float(difference / max(np.abs(b).max(), 1e-30)))
    return worst


def inputs_of(path: Path) -> list[dict[str, np.ndarray]]:
    """The stored input sets of a model, one for each size."""
    found = []
    for i in range(9):
        stored = path.with_suffix(f".{i}.npz")
        if stored.exists():
            with np.load(stored) as archive:
                found.append({name: archive[name] for name in archive.files})
    return found


def _cpu_seconds() -> float:
    """CPU seconds of this process and its ended children: no other work on the machine."""
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usages)


def check(path: Path) -> Row:
    """Compile once, run every size."""
    import mgx_mlir

    row = Row(path.stem)
    start = _cpu_seconds()
    try:
        program = mgx_mlir.compile(path, target="cpu", cache=False, threads=1)
        row.compile_s = _cpu_seconds() - start
        row.kernels = len(program.kernels)
        row.import_s = program.stats.import_s or 0.0
        row.stats = {k: v for k, v in program.stats.known().items() if isinstance(v, int | float)}
        worst = 0.0
        for inputs in inputs_of(path):
            wanted = reference(path, inputs)
            used = {name: inputs[name] for name in program.input_names}
            got = program.run(used)
            worst = max(worst, error_of(got, wanted))
            shapes = [(a.shape, b.shape) for a, b in zip(got, wanted, strict=True)]
            if any(a != b for a, b in shapes):
                row.failure = f"shapes {shapes}"
        row.error = worst
    except Exception as error:
        row.failure = f"{type(error).__name__}: {error}"
        row.compile_s = row.compile_s or _cpu_seconds() - start
    return row


def _child(path: Path, pipe: Any) -> None:
    pipe.send(check(path))
    pipe.close()


def guarded(path: Path) -> Row:
    """`check` in a process of its own with a time limit."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(path, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(SECONDS):
            return Row(path.stem, failure=f"no result after {SECONDS} s")
        return ours.recv()
    except EOFError:
        process.join()
        return Row(path.stem, failure=f"the process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def table(rows: list[Row]) -> str:
    """The rows as docs/data/model-families.md has them."""
    lines = [
        "| family | exporter | opset | dims | error | limit | compile, CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        family, exporter, opset, dims = row.name.split(".")
        why = row.failure.split("error:")[-1].split("\n")[0][:120]
        found = why or f"{row.error:.1e}"
        cells = (family, exporter, opset, dims, found, f"{limit_of(row.name):.0e}",
                 f"{row.compile_s:.1f}")  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, help="write the rows as markdown")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    os.environ.setdefault("MGX_CACHE", "0")
    import mgx_mlir  # noqa: F401  (once, ahead of the forks)

    paths = [p for p in sorted(options.folder.glob("*.onnx")) if re.search(options.pattern, p.name)]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(guarded, paths):
            rows.append(row)
            verdict = "ok  " if row.passed else "FAIL"
            print(
                f"{verdict} {row.name:45} {row.error:8.1e} {row.compile_s:6.1f} s  "
                f"{row.failure[:1500]}",
                flush=True,
            )
    print(f"{sum(r.passed for r in rows)} of {len(rows)} pass")
    if options.table:
        options.table.write_text(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in rows], indent=1))
    return 0 if all(r.passed for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

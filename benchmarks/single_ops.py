"""Times models of one operator on the cpu target against onnxruntime.

    python benchmarks/single_ops.py                          # all, dims fixed, one thread
    python benchmarks/single_ops.py softmax gemm --open      # names that contain one of these words
    python benchmarks/single_ops.py --json out.json --threads 2

Numpy in and numpy out for both, in one process, in interleaved rounds; a figure is the median over
rounds of the best batch of calls. With one thread CPU time is compared, which stands on a busy
machine, else wall clock. Results are judged by onnxruntime without saturation in 8 bits, which is
not what is timed. --open: every dim of the inputs is open when the model is compiled. Exit
code 1 if a result is wrong or does not compile.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import write_json  # noqa: E402
from benchmarks.op_models import OpModel, all_models  # noqa: E402
from benchmarks.oracle import session, worst_error  # noqa: E402

SLOWER = 1.2  # of onnxruntime's time; the goal is that no operator is above it
BATCH = 2e-4  # seconds of calls that are timed as one: the clock is coarse
# of the largest element; sums in another order differ by less
ERROR_LIMIT = 1e-5
# 8-bit results may fall on either side of a tie, one step of 127
QUANTISED_LIMIT = 1 / 100


@dataclass
class Row:
    """The figures of one model; times in microseconds, `low` and `high` of the rounds' ratios."""

    name: str
    open: bool
    threads: int
    onnxruntime_us: float = 0.0
    mgx_us: float = 0.0
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    error: float = float("inf")
    kernels: int = 0
    problem: str = ""

    @property
    def ok(self) -> bool:
        limit = QUANTISED_LIMIT if self.name.startswith(("q", "dynamic")) else ERROR_LIMIT
        return not self.problem and self.error <= limit


def aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy on 64 bytes, which neither engine copies again."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def best_call(call: Callable[[], object], seconds: float, clock: Callable[[], float]) -> float:
    """Return the seconds of a call in the best of the batches that fit into `seconds`."""
    before = time.perf_counter()
    call()
    inner = max(1, int(BATCH / max(time.perf_counter() - before, 1e-7)))
    best, end, batches = float("inf"), time.perf_counter() + seconds, 0
    while batches < 3 or time.perf_counter() < end:
        start = clock()
        for _ in range(inner):
            call()
        best = min(best, (clock() - start) / inner)
        batches += 1
    return best


def measure(model: OpModel, folder: Path, options: argparse.Namespace) -> Row:
    """Compile a model both ways, compare the results, then time them in turn."""
    import mgx_mlir

    row = Row(model.name, options.open, options.threads)
    path = folder / f"{model.name}.onnx"
    path.write_bytes(model.proto(fixed=not options.open).SerializeToString())
    inputs = {n: aligned(a) for n, a in model.arrays(np.random.default_rng(7)).items()}
    oracle = session(path, options.threads)
    try:
        program = mgx_mlir.compile(str(path), target="cpu", threads=options.threads)
        found = program.run(inputs)
    except mgx_mlir.MgxError as e:
        row.problem = str(e).splitlines()[0][:120]
        return row
    row.kernels = len(program.kernels)
    exact = session(path, options.threads, exact=True)
    row.error = worst_error(found, exact.run(None, inputs))
    clock = time.process_time if options.threads == 1 else time.perf_counter
    engines = {"ort": lambda: oracle.run(None, inputs), "mgx": lambda: program.run(inputs)}
    times: dict[str, list[float]] = {name: [] for name in engines}
    order = list(engines)
    for _ in range(options.rounds):
        for name in order:
            times[name].append(best_call(engines[name], options.seconds, clock))
        order.reverse()
    ratios = [b / a for a, b in zip(times["ort"], times["mgx"], strict=True)]
    row.onnxruntime_us = statistics.median(times["ort"]) * 1e6
    row.mgx_us = statistics.median(times["mgx"]) * 1e6
    row.ratio, row.low, row.high = statistics.median(ratios), min(ratios), max(ratios)
    return row


def show(row: Row) -> None:
    """Print one line, at once: all of them take minutes."""
    if row.problem:
        print(f"{row.name:34} {row.problem}", flush=True)
        return
    print(
        f"{row.name:34} ort {row.onnxruntime_us:9.1f} us  mgx {row.mgx_us:9.1f} us  "
        f"{row.ratio:6.2f} [{row.low:.2f} - {row.high:.2f}]  {row.kernels:3} kernels  "
        f"error {row.error:.1e}{'' if row.ok else ' WRONG'}",
        flush=True,
    )


def summary(rows: Sequence[Row]) -> str:
    """Count the rows by their ratio."""
    timed = [r for r in rows if r.ratio]
    above = [sum(r.ratio > limit for r in timed) for limit in (1.0, 1.06, SLOWER, 2.0)]
    return (
        f"{len(timed)} operators: {above[0]} above 1, {above[1]} above 1.06, "
        f"{above[2]} above {SLOWER}, {above[3]} above 2; "
        f"{sum(not r.ok for r in rows)} wrong or not compiled"
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only models whose name contains one of these")
    parser.add_argument("--open", action="store_true", help="all dims of the inputs are open")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.04, help="of one engine in one round")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    models = all_models()
    if options.words:
        models = [m for m in models if any(word in m.name for word in options.words)]
    rows = []
    with tempfile.TemporaryDirectory(prefix="mgx-ops-") as folder:
        for model in models:
            rows.append(measure(model, Path(folder), options))
            show(rows[-1])
    print(summary(rows))
    if options.json:
        content: list[dict[str, Any]] = [asdict(row) | {"ok": row.ok} for row in rows]
        write_json(options.json, content)
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())

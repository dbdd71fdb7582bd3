"""Reads thousands of damaged files in one process: `python -m tests.formats.fuzz --count 10000`.

Each file must be read, or refused by an MgxError, within a time and within 1 GB. Code of a
compiled program must be refused or be exactly what was saved. A file that does neither is kept.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir as migraphx
from mgx_mlir.api.saved_code import tree_digest
from mgx_mlir.core.errors import MgxError
from mgx_mlir.frontends.mxr.reader import load_argument
from mgx_mlir.printers.value_tree import argument_tree, msgpack_bytes
from mgx_mlir.targets.container import Container, write_container
from tests.formats.models import STORED
from tests.formats.mutations import damaged, damaged_header
from tests.formats.programs import PROGRAMS, dense

SMALL = ("gnn.script.17.dynamic", "gru_tagger_padded.script.17.dynamic")  # models of 12 and 21 KB
GRAPHS = Path(__file__).parent.parent / "frontends" / "tf" / "data" / "control"
LIMIT_SECONDS = 20.0  # for one file
LIMIT_BYTES = 1 << 30


@dataclass
class Corpus:
    """Undamaged files by kind, and how a damaged one of the kind is read."""

    files: dict[str, list[bytes]] = field(default_factory=dict)
    readers: dict[str, Callable[[bytes], None]] = field(default_factory=dict)

    def add(self, kind: str, files: list[bytes], reader: Callable[[bytes], None]) -> None:
        self.files[kind], self.readers[kind] = files, reader


def corpus(folder: Path) -> Corpus:
    """What the 10,000 files are made of."""
    found = Corpus()
    made = [build() for build in PROGRAMS.values()]
    found.add("mxr", [migraphx.save_buffer(p) for p in made], read_program)
    found.add("json", [migraphx.save_buffer(p, "json") for p in made], read_program)
    path = folder / "damaged"
    arrays: list[Any] = [
        np.arange(6, dtype="f4").reshape(2, 3).T, np.array(True), np.zeros((0, 3), "i8"),
        (np.arange(3), (np.ones(2, "f2"), np.array(1.5))),
    ]  # fmt: skip
    encoded = [argument_tree(a) for a in arrays]
    found.add("argument", [msgpack_bytes(t) for t in encoded], lambda d: _argument(path, d))
    write_container(path, {"a": np.arange(9.0), "b": b"text" * 9}, {"version": 1, "x": [1, 2]})
    found.add("container", [path.read_bytes()], lambda d: _container(path, d))
    found.add("onnx", [(STORED / f"{n}.onnx").read_bytes() for n in SMALL], _onnx)
    found.add("tf", _graphs(), lambda d: _tf(folder / "damaged.pb", d))
    code = dense()
    code.compile(migraphx.get_target("cpu"))
    whole = [migraphx.save_buffer(code), migraphx.save_buffer(code, "json")]
    found.add("compiled", whole, _Code(whole[0]))
    return found


# ---- reading -----------------------------------------------------------------------------------


def read_program(data: bytes) -> None:
    """Read a file, and all that `mgx-driver read` and `params` do with the program."""
    p = migraphx.load_buffer(data)
    repr(p)
    p.get_parameter_shapes()
    p.get_output_shapes()
    again = migraphx.save_buffer(p)
    assert repr(migraphx.load_buffer(again)) == repr(p), "the program is not the same once saved"


def _onnx(data: bytes) -> None:
    repr(migraphx.parse_onnx_buffer(data))


def _graphs() -> list[bytes]:
    """Frozen graphs of TensorFlow with branches and loops, as functions and as v1 has them."""
    found = []
    for name in ("nested_loops", "branches_in_a_row"):
        with np.load(GRAPHS / f"{name}.npz") as data:
            found += [data[key].tobytes() for key in ("v2", "v1")]
    return found


def _tf(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    repr(migraphx.parse_tf(path))


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
    """What became of the files."""

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
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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


def fuzz(count: int, seed: int, folder: Path, kinds: list[str] | None = None) -> Tally:
    """Read `count` damaged files; those that fail stay in `folder`."""
    start = time.perf_counter()
    files = corpus(folder)
    tally = Tally()
    names = kinds or list(files.files)
    donors = [d for row in files.files.values() for d in row]
    for i in range(count):
        rng = random.Random(f"{seed}.{i}")
        kind = names[i % len(names)]
        whole = rng.choice(files.files[kind])
        if kind == "container" and rng.random() < 0.5:
            data = damaged_header(whole, rng)
        else:
            trees = kind not in ("container", "onnx", "tf")
            data = damaged(whole, rng, donors, trees=trees)
        current = folder / "current"  # what a crash of the process leaves behind
        current.write_bytes(data)
        outcome, problem, took = read_one(files.readers[kind], data)
        tally.outcomes[f"{kind} {outcome}"] += 1
        tally.slowest = max(tally.slowest, took)
        if problem:
            kept = folder / f"failed-{kind}-{seed}-{i}"
            kept.write_bytes(data)
            tally.failures.append(f"{kept}: {problem}")
    tally.seconds = time.perf_counter() - start
    return tally


def read_one(reader: Callable[[bytes], None], data: bytes) -> tuple[str, str, float]:
    """(outcome, what is wrong with it, seconds)."""
    start = time.perf_counter()
    outcome, problem = "read", ""
    try:
        with _limit(LIMIT_SECONDS):
            reader(data)
    except MgxError:
        outcome = "refused"
    except Exception as e:
        outcome, problem = "failed", f"{type(e).__name__}: {str(e)[:200]}"
    if peak_bytes() > LIMIT_BYTES and not problem:
        outcome, problem = "failed", f"memory grew to {peak_bytes() / 1e6:.0f} MB"
    return outcome, problem, time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kind", action="append", help="mxr, json, argument, container, onnx, tf, compiled"
    )
    parser.add_argument("--keep", type=Path, help="folder for the files that failed")
    options = parser.parse_args()
    faulthandler.enable()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    tally = fuzz(options.count, options.seed, folder, options.kind)
    for line in tally.failures:
        print(line)
    print(tally)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""A program that interrupts the phases of its children at drawn moments, and says what is left.

    python moments.py PHASE COUNT SEED

A moment is a call of a Python function, by number; the exception is that of a signal's handler.
For each moment a child is forked, which ends with a line of JSON.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.testing  # here: an import takes a TimeoutError for an error of its own

from tests.process import threads


class Wanted(Exception):
    """An exception of the caller's own."""


class Ended(BaseException):
    """Another, which no `except Exception` takes."""


KINDS: tuple[type[BaseException], ...] = (
    *(KeyboardInterrupt, TimeoutError, ValueError, RuntimeError, IndexError, MemoryError),
    *(Wanted, Ended),
)


class Phases:
    """A phase that is interrupted. `ready` is done in the parent, once; a phase in each child."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = threads.model(0)
        self.program: Any = None
        self.path = folder / "m.mxr"

    def ready(self, phase: str) -> None:
        """Do what comes before a phase; children of a cold phase begin before the first import."""
        import mgx_mlir as mgx

        if phase in ("second", "first_run", "run", "save", "load", "pickled"):
            self.program = mgx.compile(self.data, "cpu")
            mgx.save(self.program, self.path)
        if phase == "run":
            threads.checked(self.program.run, 0)

    def imported(self) -> None:
        import mgx_mlir.onnxruntime as ort

        assert ort.InferenceSession

    def first(self) -> None:
        import mgx_mlir as mgx

        mgx.compile(self.data, "cpu")

    def session(self) -> None:
        import mgx_mlir.onnxruntime as ort

        threads.checked(lambda feed: ort.InferenceSession(self.data).run(None, feed), 0)

    def second(self) -> None:
        import mgx_mlir as mgx

        mgx.compile(self.data, "cpu", cache=False)

    def first_run(self) -> None:
        threads.checked(self.program.run, 0)

    def run(self) -> None:
        for shift in range(50):
            threads.checked(self.program.run, 0, shift)

    def reference(self) -> None:
        import mgx_mlir as mgx

        threads.checked(mgx.parse_onnx_buffer(self.data).run, 0)

    def save(self) -> None:
        import mgx_mlir as mgx

        mgx.save(self.program, self.folder / f"saved{os.getpid()}.mxr")

    def load(self) -> None:
        import mgx_mlir as mgx

        threads.checked(mgx.load(self.path).run, 0)

    def pickled(self) -> None:
        import copy
        import pickle

        threads.checked(pickle.loads(pickle.dumps(self.program)).run, 0)
        threads.checked(copy.deepcopy(self.program).run, 0)

    def afterwards(self) -> None:
        """The user's next calls: the numbers are right, of old programs and of new ones."""
        import mgx_mlir as mgx

        for cache in (True, False):
            threads.checked(mgx.compile(self.data, "cpu", cache=cache).run, 0)
        if self.program is not None:
            threads.checked(self.program.run, 0)
            mgx.save(self.program, self.path)
            threads.checked(mgx.load(self.path).run, 0)


COLD = ("imported", "first", "session", "reference")
WARM = ("second", "first_run", "run", "save", "load", "pickled")


def is_body(frame: FrameType) -> bool:
    """Return whether a frame is the body of a module or of a class, of ours or of the bindings'."""
    root = str(frame.f_globals.get("__name__")).partition(".")[0]
    is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    return root in ("mgx_mlir", "torch_mlir") and not is_function


class Injection:
    """Sends a signal at the call of a number, or raises there without one."""

    def __init__(self, at: int, kind: type[BaseException], direct: bool) -> None:
        self.at, self.kind, self.direct = at, kind, direct
        self.calls, self.where = 0, ""

    def handler(self, number: int, frame: FrameType | None) -> None:
        raise self.kind("the time is up")

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (self.direct and not is_body(frame)):
            return
        self.calls += 1
        if self.calls == self.at:
            sys.setprofile(None)
            self.where = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}"
            if self.direct:
                raise self.kind("the time is up")
            signal.raise_signal(signal.SIGALRM)

    def over(self, phase: Callable[[], None]) -> BaseException | None:
        """Return what comes out of the phase."""
        before = signal.signal(signal.SIGALRM, self.handler)
        try:
            sys.setprofile(self.profile)
            phase()
            sys.setprofile(None)
            if self.where and not self.direct:
                time.sleep(2)  # an import puts it off until a moment after its end
        except BaseException as e:
            return e
        finally:
            sys.setprofile(None)
            signal.signal(signal.SIGALRM, before)
        return None


def child(phases: Phases, phase: str, injection: Injection) -> dict[str, Any]:
    """Interrupt a phase, do what comes next, and return what was seen."""
    started = len(children())
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        error = injection.over(getattr(phases, phase))
        found: dict[str, Any] = {
            "calls": injection.calls, "where": injection.where,
            "wanted": injection.kind.__name__, "got": type(error).__name__,
        }  # fmt: skip
        if not injection.where:
            return found
        try:
            phases.afterwards()
        except BaseException:
            found["problem"] = traceback.format_exc()[-1500:]
        with contextlib.suppress(ImportError):
            from mgx_mlir.targets import child as compiler

            compiler.shared_compiler().close()
        found["left"] = sorted(p.name for p in Path(folder).iterdir())
        found["left"] += [p.name for p in phases.folder.iterdir() if p.name.startswith(".")]
        found["processes"] = len(children()) - started
    return found


def children() -> list[str]:
    try:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:
        return []


def forked(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do something in a forked child."""
    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        signal.alarm(0)
        try:
            os.write(send, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as f:
        text = f.read()
    status = os.waitpid(pid, 0)[1]
    return json.loads(text) if text else {"problem": f"the child ended with status {status}"}


def main(phase: str, count: int, seed: int) -> int:
    """Interrupt `count` moments of a phase; a line for each, 1 where one left something."""
    rng, failed = random.Random(seed), 0
    cold, direct = phase.removesuffix("_direct") in COLD, phase.endswith("_direct")
    phase = phase.removesuffix("_direct")
    with tempfile.TemporaryDirectory() as folder:
        phases = Phases(Path(folder))
        if not cold:
            phases.ready(phase)
        never = Injection(0, Ended, direct)
        if cold:  # the code lies in the cache from here on
            forked(lambda: (phases.first(), {})[1])
        total = forked(lambda: child(phases, phase, never))["calls"]
        for _ in range(count):
            at, kind = rng.randint(1, max(1, int(total * 0.95))), rng.choice(KINDS)
            injection = Injection(at, kind, direct)
            found = forked(lambda i=injection: child(phases, phase, i))
            bad = found.get("problem") or found.get("left") or found.get("processes")
            if bad or found["got"] != found["wanted"]:
                failed = 1
            print(json.dumps({"at": at, "of": total, **found}), flush=True)
    return failed


if __name__ == "__main__":
    assert np.__version__  # a user has numpy and the onnx package before us
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

"""Interrupts at drawn moments: the exception is the caller's, and the process works afterwards."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mgx_mlir as mgx
from mgx_mlir.core import interrupts
from tests.process import endings, moments, threads

ROOT = Path(__file__).resolve().parents[2]
PHASES = [*moments.COLD, *moments.WARM, "first_direct", "imported_direct", "session_direct"]
SEED = os.environ.get("MGX_MOMENTS_SEED", "7")
DEFAULT = {"first": 2, "first_direct": 1, "run": 2, "second": 1}


def interrupted(phase: str, count: int, folder: Path) -> None:
    around = dict(os.environ, PYTHONPATH=str(ROOT), MGX_CACHE_DIR=str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "tests.process.moments", phase, str(count), SEED],
        env=around, cwd=ROOT, capture_output=True, text=True, timeout=120 + 60 * count,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == count


@pytest.mark.parametrize("phase", DEFAULT)
def test_drawn_moments(phase: str, tmp_path: Path) -> None:
    interrupted(phase, DEFAULT[phase], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_more_drawn_moments(phase: str, tmp_path: Path) -> None:
    interrupted(phase, 16, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [f.__name__ for f in endings.NAMES])
def test_programs_that_are_cut_short_otherwise(name: str, tmp_path: Path) -> None:
    """Cancelled tasks, exits, a traceback that is kept: no crash, and nothing is left."""
    (tmp_path / "tmp").mkdir()
    around = dict(os.environ, MGX_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path / "tmp"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.process.endings", name],
        env=around, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "right afterwards" in done.stdout
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "tmp").iterdir())


# ---- the hold itself -----------------------------------------------------------------------------


class Mine(Exception):
    """The exception of a handler."""


def raising(number: int, frame: object) -> None:
    raise Mine


@pytest.fixture
def handler() -> Iterator[Callable[..., None]]:
    before = signal.signal(signal.SIGALRM, raising)
    yield raising
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("handler")
def test_a_handler_runs_at_a_safe_point_and_its_exception_passes_every_except() -> None:
    steps: list[str] = []

    @interrupts.held
    def work() -> None:
        signal.raise_signal(signal.SIGALRM)
        steps.append("goes on")
        try:
            interrupts.check()
        except Exception:
            steps.append("taken")
        steps.append("after")

    with pytest.raises(Mine) as e:
        work()
    assert steps == ["goes on"]
    assert e.value.__cause__ is None
    assert e.value.__context__ is None
    assert signal.getsignal(signal.SIGALRM) is raising


@pytest.mark.usefixtures("handler")
def test_a_call_without_a_safe_point_ends_before_the_handler_runs() -> None:
    @interrupts.held
    def work(fails: bool) -> None:
        signal.raise_signal(signal.SIGALRM)
        if fails:
            raise ValueError

    for fails in (False, True):
        with pytest.raises(Mine):
            work(fails)


@pytest.mark.usefixtures("handler")
def test_foreign_code_that_takes_the_exception_loses_it_to_the_caller() -> None:
    @interrupts.held
    def work() -> None:
        with interrupts.at_once(), contextlib.suppress(Exception):
            signal.raise_signal(signal.SIGALRM)

    with pytest.raises(Mine):
        work()
    work_again = interrupts.held(lambda: 3)
    assert work_again() == 3


def test_a_handler_that_raises_nothing_is_only_late() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        with interrupts.hold(), interrupts.hold():
            signal.raise_signal(signal.SIGUSR1)
            assert not seen
        assert seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_that_is_replaced_meanwhile_stays_replaced() -> None:
    before = signal.getsignal(signal.SIGUSR1)

    def other(number: int, frame: object) -> None:
        return None

    try:
        with interrupts.hold():
            signal.signal(signal.SIGUSR1, other)
        assert signal.getsignal(signal.SIGUSR1) is other
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("handler")
def test_a_wait_for_a_lock_of_another_thread_ends() -> None:
    lock = threading.Lock()
    lock.acquire()

    @interrupts.held
    def work() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with interrupts.waiting(lock):
            pass

    with pytest.raises(Mine):
        work()
    lock.release()
    assert lock.acquire(False)


@pytest.mark.usefixtures("handler")
def test_a_finalizer_does_not_swallow_the_exception() -> None:
    class Held:
        def __del__(self) -> None:
            with interrupts.later():
                signal.raise_signal(signal.SIGALRM)

    def work() -> None:
        held = Held()
        del held
        end = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(0.01)

    with pytest.raises(Mine):
        work()


# ---- imports -------------------------------------------------------------------------------------


class Loader:
    """A finder of modules of any name, and their one loader, as editable installs have them."""

    def __init__(self) -> None:
        self.whole: set[str] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        return ModuleSpec(name, self) if name.endswith("made_up") else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        signal.raise_signal(signal.SIGALRM)
        self.whole.add(module.__name__)


def imported(name: str) -> None:
    """Import a module; a signal of that time has come when this ends.

    One long sleep would go on where another thread takes the signal.
    """
    importlib.import_module(name)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize(
    ("name", "whole"), [("mgx_mlir.core.made_up", True), ("torch_mlir.made_up", True),
                        ("made_up", False)],
)  # fmt: skip
def test_an_import_ends_first_whoever_loads_the_module(
    name: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler's exception waits for modules of ours, and comes at once in a module of others."""
    loader = Loader()
    monkeypatch.setattr(sys, "meta_path", [sys.meta_path[0], loader, *sys.meta_path[1:]])
    assert type(sys.meta_path[0]).__name__ == "_Finder"
    with pytest.raises(Mine):
        imported(name)
    assert (name in loader.whole) == whole
    sys.modules.pop(name, None)


# ---- runs ----------------------------------------------------------------------------------------

X = {"x": np.ones((4, threads.DIM), np.float32)}


def run_until(program: Any, seconds: float) -> None:
    """Run until a signal comes after so many seconds; a minute at most."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        program.run(X)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("base", [ValueError, TimeoutError, RuntimeError, MemoryError, IndexError])
def test_a_run_ends_with_the_exception_of_the_handler(
    base: type[Exception],
) -> None:
    own = type("Own", (base,), {})
    program = mgx.compile(threads.model(0), "cpu")
    threads.checked(program.run, 0)

    def raises(number: int, frame: object) -> None:
        raise own("the time is up")

    signal.signal(signal.SIGALRM, raises)
    for i in range(20):
        with pytest.raises(own):
            run_until(program, 0.002 + 0.0007 * i)
    threads.checked(program.run, 0)


@pytest.mark.usefixtures("handler")
def test_lanes_are_free_after_an_interrupt() -> None:
    """A lane that stays taken would hold back forks for ever."""
    program = mgx.compile(threads.model(0), "cpu")
    for i in range(40):
        with pytest.raises(Mine):
            run_until(program, 0.001 + 0.0001 * i)
    lanes = program.load().lanes
    assert lanes is not None
    assert not any(lock.locked() for _, lock in lanes._lanes)


@pytest.mark.parametrize("tool", ["driver", "opt", "reduce"])
def test_tools_end_with_130(tool: str, tmp_path: Path) -> None:
    """An interrupt in the first second, wherever that is."""
    model, text = tmp_path / "m.onnx", tmp_path / "m.mlir"
    model.write_bytes(threads.model(0))
    text.write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : "
                    "tensor<2xf32>\n}\n")  # fmt: skip
    words = {
        "driver": ["perf", str(model), "--cpu", "--iterations", "1000000000"],
        "opt": ["-"],
        "reduce": [str(text), "--test", "sleep 100; true {}"],
    }[tool]
    place = tmp_path / "tmp"
    place.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", f"mgx_mlir.tools.{tool}", *words],
        env=dict(os.environ, PYTHONPATH=str(ROOT), TMPDIR=str(place)), cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not list(place.iterdir())

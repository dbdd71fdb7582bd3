"""Engines timed in blocks: what one leaves running does not reach the other; busy machines show."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from mgx_mlir.debug import engine_times
from mgx_mlir.debug.engine_times import Block, EngineTimes, Ratio, rest, time_engines

SPIN = 0.1  # seconds


class Spinning:
    """An engine whose pool thread keeps a core busy after a call, as onnxruntime's do."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.thread = threading.Thread()

    def __call__(self) -> None:
        self.called.set()
        if not self.thread.is_alive():
            self.thread = threading.Thread(target=self._spin, daemon=True)
            self.thread.start()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1500)

    def _spin(self) -> None:
        start = time.thread_time()
        while time.thread_time() - start < SPIN:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 1000)  # without Python's lock
            if self.called.is_set():
                self.called.clear()
                start = time.thread_time()


def test_an_engine_never_runs_beside_the_others_threads() -> None:
    spinning, beside = Spinning(), list[bool]()

    def other() -> None:
        beside.append(spinning.thread.is_alive())
        hashlib.pbkdf2_hmac("sha256", b"", b"", 6000)  # longer than a batch: no call joins others

    spinning()
    other()  # in turns of single calls it does
    assert beside == [True]
    rest()
    beside.clear()
    times = time_engines({"a": spinning, "b": other}, block=0.02, rounds=4)
    assert times.all_rounds == 4
    # the first five calls choose the size of a batch
    assert len(beside) > 10
    assert not any(beside[5:])


def test_the_ratio_of_engines_with_known_work() -> None:
    def work(steps: int) -> Callable[[], object]:
        return lambda: hashlib.pbkdf2_hmac("sha256", b"", b"", steps)

    times = time_engines({"a": work(2000), "b": work(5000)}, clock="cpu", block=0.03, limit=2)
    # a machine full of other tests is off by a tenth
    assert times.ratio("b", "a").value == pytest.approx(2.5, rel=0.2)
    assert times.seconds("b") / times.seconds("a") == pytest.approx(2.5, rel=0.2)


def test_short_calls_are_timed_many_at_a_time() -> None:
    """The calls that choose the batch are tried again where one of them is held up."""
    count = 0

    def short() -> None:
        nonlocal count
        count += 1
        if count in {1, 2}:
            time.sleep(1e-4)

    times = time_engines({"a": short}, block=0.01, rounds=1)
    [block] = times.blocks["a"]
    assert count > 100 * len(block.calls)
    assert 0 < times.seconds("a") < 1e-5


@pytest.mark.parametrize(("count", "left_out"), [(1, 0), (5, 0), (6, 0), (9, 1), (20, 5), (40, 13)])
def test_the_interval_is_that_of_the_sign_test(count: int, left_out: int) -> None:
    """The ranks that tables of the sign test have for a median's 95 % interval."""
    found = Ratio.of([float(n) for n in range(1, count + 1)])
    assert (found.low, found.high) == (1 + left_out, count - left_out)
    assert found.value == (count + 1) / 2


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    draws = np.random.default_rng(3).lognormal(size=(2000, 12))
    found = [Ratio.of(row) for row in draws]
    held = sum(r.low <= 1 <= r.high for r in found) / len(found)
    assert 0.95 <= held <= 0.98  # 12 draws without two on either side: 96.1 %


def blocks(seconds: list[float], waited: float = 0.0) -> list[Block]:
    return [Block(s, (s,), waited) for s in seconds]


def test_disturbed_rounds_do_not_count() -> None:
    times = EngineTimes("wall", {"a": blocks([1.0] * 8), "b": blocks([2.0] * 8)})
    assert times.problem("b", "a") is None
    times.blocks["b"][:2] = blocks([9.0] * 2, waited=0.5)
    assert times.rounds == [2, 3, 4, 5, 6, 7]
    assert times.ratio("b", "a") == Ratio(2, 2, 2)
    times.blocks["a"][7] = Block(1.0, (1.0,), 0.5)
    problem = times.problem("b", "a")
    assert problem is not None
    assert problem.startswith("other programs use the cores")
    times.clock = "cpu"  # CPU time stands still while a thread waits
    assert not times.too_busy


def test_a_ratio_that_varies_is_none() -> None:
    varying = blocks([1.0, 1.3, 1.0, 1.3, 1.0, 1.3, 1.15])
    times = EngineTimes("wall", {"a": blocks([1.0] * 7), "b": varying})
    assert times.problem("b", "a") == "it varies from 1.00 to 1.30 between blocks"


def test_blocks_go_on_until_the_ratio_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = iter(np.random.default_rng(0).normal(1, 0.1, 4000))

    def timed(call: object, clock: object, seconds: float, batch: int) -> Block:
        return Block(float(next(draw)), (1.0,), 0.0)

    monkeypatch.setattr(engine_times, "_timed", timed)
    monkeypatch.setattr(engine_times, "rest", lambda: None)
    engines = {"a": lambda: None, "b": lambda: None}
    wide, narrow = (time_engines(engines, spread=s).all_rounds for s in (0.5, 0.05))
    assert wide == engine_times.LEAST
    assert narrow > 4 * wide
    start = time.perf_counter()
    time_engines(engines, spread=0.0, limit=0.05)
    assert time.perf_counter() - start < 1


def test_waits_of_a_block_are_its_own() -> None:
    """Waking on an idle core is no wait, and earlier wakes are no credit for later waits."""
    early = {"1": (10**6, 100_000), "2": (5 * 10**9, 10)}
    later = {"1": (10**6 + 2 * 10**8, 100_100), "2": (5 * 10**9 + 10**6, 1010), "3": (10**8, 1)}
    # 0.2 s in 100 waits, 1 ms in 1000, and a thread that began since
    expected = 0.2 - 100 * engine_times.WAKING + 0.1 - engine_times.WAKING
    assert engine_times._seconds_waited(early, later) == pytest.approx(expected)
    assert engine_times._seconds_waited(later, later) == 0


def test_a_machine_that_is_never_quiet_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_times, "_timed", lambda *_: Block(1.0, (1.0,), 0.5))
    monkeypatch.setattr(engine_times, "rest", lambda: None)
    engines = {"a": lambda: None, "b": lambda: None}
    assert time_engines(engines).all_rounds == engine_times.HOPELESS
    assert time_engines(engines, clock="cpu").all_rounds == engine_times.LEAST


BUSY = """
import hashlib, os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
from mgx_mlir.debug.engine_times import time_engines
work = lambda n: lambda: hashlib.pbkdf2_hmac("sha256", b"", b"", n)
times = time_engines({"a": work(1000), "b": work(1500)}, block=0.1, rounds=6)
print(times.problem("b", "a"))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's schedstat")
def test_a_busy_core_is_seen() -> None:
    """A process that shares its only core with another one states no ratio."""
    core = str(min(os.sched_getaffinity(0)))
    hog = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", hog, core]) as busy:
        try:
            done = subprocess.run(
                [sys.executable, "-c", BUSY, core], capture_output=True, text=True, check=True
            )
        finally:
            busy.kill()
    assert done.stdout.startswith("other programs use the cores"), done.stdout


def test_no_rounds_are_no_ratio() -> None:
    assert math.isnan(EngineTimes("wall", {"a": [], "b": []}).ratio("a", "b").value)

"""Per-dispatch times: every dispatch is there, and the sums fit the wall clock."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core.errors import RunError
from mgx_mlir.hardware.machine import has_tile_registers
from mgx_mlir.runtime.asking_library import environment
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.runtime.profile import _parse, profile
from tests.runtime.conftest import Compile
from tests.targets.modules import add, matmul_softmax


def test_every_dispatch_is_timed(build: Compile) -> None:
    made = build(matmul_softmax(256))
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    found = profile(made.vmfb, {"w": w}, [a], calls=20)
    names = {d.name for d in found.dispatches}
    assert set(made.dispatches["main"]) <= names
    launches = {d.name: d.launches for d in found.dispatches}
    assert all(launches[n] == 1 for n in made.dispatches["main"])
    assert list(found.dispatches) == sorted(found.dispatches, key=lambda d: -d.seconds)
    # on one thread the dispatches are inside the call, and most of it
    assert 0.2 * found.wall < found.total < 1.1 * found.wall
    module = LoadedModule(made.vmfb, {"w": w}, threads=1)
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        module.run([a])
        best = min(best, time.perf_counter() - start)
    assert best / 5 < found.wall < best * 50  # the same order: other load may be on the machine


TWO_THREADS = """\
BM_main/process_time/real_time       5.00 ms         9.00 ms           20 items_per_second=200/s
  host_execute_queue p=0 q=0 dispatch  count=60 total=80 ms avg=1 ms operations=60 tile_sum=160 ms
  host_execute _encoding_1  count=20 total=4.000 ms avg=200 us tiles=320 tile_sum=4.500 ms
  host_execute main_dispatch_0_matmul  count=40 total=80.000 ms avg=2 ms tiles=2560 tile_sum=0.160 s
  host_execute old_form  count=20 total=2.000 us
"""


def test_times_are_elapsed_ones_on_any_number_of_threads() -> None:
    """`total` is elapsed time, `tile_sum` that of all threads."""
    found = _parse(TWO_THREADS, 20, 2)
    rows = [(d.name, d.launches, d.seconds, d.busy) for d in found.dispatches]
    assert rows == [
        ("main_dispatch_0_matmul", 2.0, 4e-3, 8e-3),
        ("_encoding_1", 1.0, 2e-4, pytest.approx(2.25e-4)),
        ("old_form", 1.0, 1e-7, 1e-7),
    ]
    assert found.total == pytest.approx(4.2001e-3)
    assert found.total < found.wall


def test_the_runtimes_counters_are_elapsed_times(build: Compile) -> None:
    """A kernel of many tiles on two threads: all threads together spend more than passes."""
    made = build(matmul_softmax(512))
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
    found = profile(made.vmfb, {"w": w}, [a], calls=10, threads=2)
    for d in found.dispatches:
        assert 0.9 * d.seconds <= d.busy <= 2.1 * d.seconds + 1e-4
    # the time of dispatches is at most the wall time; a sum over threads may exceed it
    assert found.total <= 1.05 * found.wall


def test_threads_and_types(build: Compile) -> None:
    text = add(4096).replace("f32", "bf16")
    made = build(text)
    x = np.ones(4096, ml_dtypes.bfloat16)
    assert profile(made.vmfb, {}, [x], threads=2, calls=5).threads == 2


def test_wrong_inputs_are_a_clean_error(build: Compile) -> None:
    with pytest.raises(RunError, match="the profile failed"):
        profile(build(add(32)).vmfb, {}, [np.zeros(7, np.float32)], calls=2)


def test_a_started_program_asks_for_tile_registers(tmp_path: Path) -> None:
    """The object that is loaded with it asks; without, a program that is started has none."""
    if not has_tile_registers():
        pytest.skip("this process has no tile registers")
    granted = "import ctypes as c; n = c.c_ulong(); l = c.CDLL(None)\n"
    granted += "l.syscall(158, 0x1022, c.byref(n)); print(n.value >> 18 & 1)"
    for asks, want in ((environment(tmp_path), "1"), ({}, "0")):
        found = subprocess.run(
            [sys.executable, "-c", granted], env={**os.environ, **asks}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert found.stdout.strip() == want
        assert not found.stderr

"""Programs that are closed and dropped: nothing is freed too early, and nothing stays."""

from __future__ import annotations

import gc
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError
from mgx_mlir.runtime import host_memory
from tests.support.models import model_of, node

WIDTH = 512


def resident() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("needs /proc/self/status, to read the resident memory")
    [line] = [row for row in status.read_text().splitlines() if row.startswith("RssAnon")]
    return int(line.split()[1]) << 10


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net with 3 MB of weights, on two threads."""
    rng = np.random.default_rng(0)
    weights = {f"w{i}": rng.standard_normal((WIDTH, WIDTH)) / 23 for i in range(3)}
    nodes = [node("MatMul", f"x{i} w{i}", f"x{i + 1}") for i in range(3)]
    model = model_of(nodes, {"x0": [4, WIDTH]}, {"x3": [4, WIDTH]}, weights)
    path = tmp_path_factory.mktemp("close") / "m.mxr"
    mgx_mlir.save(mgx_mlir.compile(model, "cpu", threads=2), path)
    return path


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((4, WIDTH)).astype(np.float32)


def test_iree_holds_no_python_buffer_of_a_weight(saved: Path, x: np.ndarray) -> None:
    """A worker that lets go of a weight last would free it without Python's lock."""
    program = mgx_mlir.load(saved)
    program.run(x)
    loaded = program.load()
    assert loaded.held
    alone = [np.zeros(64, np.uint8)]
    [once] = {sys.getrefcount(a) for a in alone}
    assert {sys.getrefcount(a) for a in loaded.held} == {once}
    assert {sys.getrefcount(a) for a in loaded.held} == {once}
    program.close()


def test_close_while_others_run(saved: Path, x: np.ndarray) -> None:
    """A call that has begun ends as it should; one that comes later says what is wrong."""
    [want] = mgx_mlir.load(saved).run(x)
    said: set[str] = set()

    def work(program: mgx_mlir.CompiledProgram, begun: threading.Event) -> int:
        calls = 0
        while True:
            try:
                [found] = program.run(x)
            except MgxError as e:
                said.add(str(e))
                return calls
            finally:
                begun.set()
            assert np.array_equal(found, want)
            calls += 1

    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            program = mgx_mlir.load(saved)
            begun = threading.Event()
            each = [pool.submit(work, program, begun) for _ in range(4)]
            begun.wait(60)
            program.close()
            assert sum(e.result(60) for e in each) > 0
    assert said == {"the program is closed"}


def test_300_loads_and_deletes_leave_memory_as_it_was(saved: Path, x: np.ndarray) -> None:
    """Half of them are dropped right after a call on several threads."""
    for _ in range(20):
        mgx_mlir.load(saved).run(x)
    gc.collect()
    before = resident()
    for i in range(300):
        program = mgx_mlir.load(saved)
        program.run(x)
        if i % 2:
            program.close()
        del program
    gc.collect()
    assert resident() - before < 5 << 20


def test_what_a_failed_call_may_still_read_is_kept_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kernels that were started before the failure run on."""
    monkeypatch.setattr(host_memory, "_failed", deque())
    now = [0.0]
    monkeypatch.setattr(host_memory.time, "monotonic", lambda: now[0])
    host_memory.keep_after_failure(np.zeros(3))
    now[0] = 30.0
    host_memory.keep_after_failure(np.zeros(3))
    assert len(host_memory._failed) == 2
    now[0] = 61.0
    host_memory.drop_old()
    assert len(host_memory._failed) == 1

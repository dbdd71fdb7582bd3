"""Jobs behind the calls that ask for them: order, limits, forks, interrupts, the process's end."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mgx_mlir.targets import background
from mgx_mlir.targets.background import Job, settle, submit
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.container import Container, write_container

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    settle()
    yield
    assert settle(seconds=10)
    assert not background._jobs


class Gate(Job):
    """A job that lasts until it is opened, and can be cancelled meanwhile."""

    def __init__(self) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()
        super().__init__("gate", self._wait)

    def _wait(self, _: Job) -> None:
        self.begun.set()
        while not self.opened.wait(0.005):
            self.check()


def test_jobs_run_in_order_behind_the_caller() -> None:
    gate, seen = Gate(), list[int]()
    submit(gate)
    for i in range(background.MOST - 1):
        submit(Job(i, lambda _, i=i: seen.append(i)))
    assert not seen
    assert not settle(0, seconds=0.05)
    gate.opened.set()
    assert settle(seconds=10)
    assert seen == list(range(background.MOST - 1))


def test_a_full_queue_makes_the_caller_wait() -> None:
    gate = Gate()
    submit(gate)
    for i in range(background.MOST - 1):
        submit(Job(i, lambda _: None))
    threading.Timer(0.2, gate.opened.set).start()
    start = time.monotonic()
    submit(Job("one too many", lambda _: None))
    assert time.monotonic() - start > 0.1


def test_a_failed_job_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: Job) -> None:
        raise ValueError("as it is")

    done = list[int]()
    submit(Job("bad", fails))
    submit(Job("good", lambda _: done.append(1)))
    assert settle(seconds=10)
    assert done == [1]
    assert "was not written to the compile cache: ValueError: as it is" in caplog.text


def test_cancelled_jobs_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    gate, done = submit(Gate()), list[int]()
    later = submit(Job("later", lambda _: done.append(1)))
    assert isinstance(gate, Gate)
    assert gate.begun.wait(10)
    background.cancel()
    assert settle(seconds=10)
    assert (gate.is_done, later.is_done, done, caplog.text) == (True, True, [], "")


@posix
def test_a_forked_child_does_its_own_jobs_at_once() -> None:
    """The jobs of the parent stay the parent's; a child may end without exit handlers."""
    gate = Gate()
    submit(gate)
    assert gate.begun.wait(10)
    child = os.fork()
    if not child:
        done = list[int]()
        good = settle(seconds=1) and submit(Job("own", lambda _: done.append(1))).is_done
        os._exit(0 if good and done == [1] and not gate.is_done else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not gate.is_done
    gate.opened.set()


def test_what_is_cancelled_leaves_no_file(tmp_path: Path) -> None:
    """A pack of several steps, cancelled while it is hashed and while it is written."""
    weights = {"w": np.zeros(40 << 20, np.uint8)}
    for end in (2, 8):
        count = iter(range(end))

        def check(count: Iterator[int] = count) -> None:
            if next(count, None) is None:
                raise background.Cancelled

        with pytest.raises(background.Cancelled):
            Cache(tmp_path).put_pack(weights, check)
        assert not [p for p in (tmp_path / "v3" / "pack").rglob("*") if p.is_file()]
    key = Cache(tmp_path).put_pack(weights)
    assert Cache(tmp_path).get("pack", key) is not None


def test_known_sums_are_those_of_the_bytes(tmp_path: Path) -> None:
    write_container(tmp_path / "c", {"a": b"abc"}, sums={"a": "0" * 64})
    with pytest.raises(Exception, match="damaged"):
        Container(tmp_path / "c").verify()


# ---- whole processes -----------------------------------------------------------------------------

SLOW = """
import sys, time
from mgx_mlir.targets.background import Job, submit
def work(job):
    print("begun", flush=True)
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        job.check()
        time.sleep(0.005)
    print("done", flush=True)
submit(Job("slow", work))
time.sleep(float(sys.argv[2]))
"""


def test_the_end_of_the_process_waits() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW, "0.5", "0"], capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["begun", "done"]


@posix
@pytest.mark.parametrize("seconds", ["60", "0"])
def test_an_interrupt_does_not_wait(seconds: str) -> None:
    """In the program, and while its end waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "60", seconds], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert time.monotonic() - start < 5  # half a second on an idle machine
    assert "done" not in out


@pytest.fixture
def model(tmp_path: Path) -> Path:
    w = np.random.default_rng(0).standard_normal((512, 1024)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 512])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1024])
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    time.sleep(0.1)  # old enough for a digest that is kept
    return tmp_path / "m.onnx"


COMPILES = """
import resource, signal, sys
import numpy as np, onnx
import mgx_mlir
if "full" in sys.argv:  # a disk with room for the code, and none for the weights
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
found = mgx_mlir.compile(sys.argv[1], "cpu")
x = np.ones((1, 512), np.float32)
w = onnx.numpy_helper.to_array(onnx.load(sys.argv[1]).graph.initializer[0])
np.testing.assert_allclose(found.run({"x": x})[0], x @ w, rtol=1e-4, atol=1e-3)
print(found.stats.cached)
"""


def compiles(model: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMPILES, str(model), *words], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, "MGX_CACHE_DIR": str(model.parent / "cache")},
    )  # fmt: skip


@posix
def test_a_full_disk_costs_the_entry_alone(model: Path) -> None:
    for words, cached in (("full",), "False"), ((), "False"), ((), "True"):
        process = compiles(model, *words)
        out, errors = process.communicate(timeout=120)
        assert (process.returncode, out.strip()) == (0, cached), errors
        assert ("cannot write" in errors) == ("full" in words)
        assert not list((model.parent / "cache").rglob(".*"))


def test_two_processes_keep_one_pack(model: Path) -> None:
    for process in [compiles(model) for _ in range(2)]:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    packs = [p for p in (model.parent / "cache" / "v3" / "pack").rglob("*") if p.is_file()]
    assert sorted(p.suffix for p in packs) == ["", ".seal"]
    process = compiles(model)
    assert process.communicate(timeout=120)[0].strip() == "True"


def test_a_file_that_is_removed_behind_the_compile(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program was read whole: it is kept under what the file was."""
    import mgx_mlir

    monkeypatch.setenv("MGX_CACHE_DIR", str(model.parent / "cache"))
    data = model.read_bytes()
    gate = Gate()
    submit(gate)
    assert not mgx_mlir.compile(model, "cpu").stats.cached
    model.unlink()
    gate.opened.set()
    model.write_bytes(data)
    assert mgx_mlir.compile(model, "cpu").stats.cached

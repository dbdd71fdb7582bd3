"""The line that a terminal shows while a model compiles, and how Ctrl-C ends it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mgx_mlir.core import progress
from tests.driver.conftest import Driver

# the line from the start on; a command says at its end whether rich was loaded
DRIVER = """
import sys
from mgx_mlir.tools.driver import progress
progress.DELAY = 0.0
from mgx_mlir.tools.driver.main import main
status = main(sys.argv[1:])
print("rich" in sys.modules)
sys.exit(status)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels enough to be compiled apart, for seconds."""
    return convolutions(tmp_path_factory.mktemp("progress") / "m.onnx", 28)


def convolutions(path: Path, count: int) -> Path:
    """Write a chain of convolutions of several shapes."""
    rng, nodes, weights, name, channels = np.random.default_rng(0), [], [], "x", 8
    for i in range(count):
        more = channels + 4 * (i % 3)
        w = rng.standard_normal((more, channels, 3, 3)).astype(np.float32) / 10
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", [name, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Sigmoid" if i % 2 else "Tanh", [f"c{i}"], [f"a{i}"]))
        name, channels = f"a{i}", more
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 20, 20])
    y = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 20, 20])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


class Terminal:
    """A driver on a terminal of its own: its stderr, and what it may leave behind."""

    def __init__(self, folder: Path, *words: str, columns: int = 100, **environment: str) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.mark = f"mark{os.getpid()}{time.monotonic_ns()}"
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # a test runner's worker has a width in its environment
        own = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *words],
            stdin=slave, stderr=slave, stdout=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**own, "TERM": "xterm", "TMPDIR": str(self.temporary), "MARK": self.mark,
                 "MGX_CACHE_DIR": str(folder / "cache"), **environment},
        )  # fmt: skip
        os.close(slave)
        self.shown = ""

    def read(self, until: str = "", seconds: float = 120) -> str:
        """Read what is shown, up to a text or to the end."""
        end = time.monotonic() + seconds
        while not (until and re.search(until, self.shown)) and time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    data = os.read(self.master, 1 << 16)
                except OSError:  # nobody writes to it any more
                    break
                self.shown += data.decode(errors="replace")
        return self.shown

    def end(self) -> str:
        """Read to the end; stdout."""
        self.read()
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        self.process.wait(60)
        os.close(self.master)
        return out

    def others(self) -> list[str]:
        """Return processes that it started, and that live."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in entry.read_bytes():
                    found.append((entry.parent / "cmdline").read_text().replace("\0", " ")[:80])
            except OSError:
                continue
        return found


def test_one_line_names_stage_kernels_and_seconds(model: Path, tmp_path: Path) -> None:
    ran = Terminal(tmp_path, "compile", str(model), "--cpu", "--time-report")
    out = ran.end()
    assert ran.process.returncode == 0, ran.shown[-2000:]
    assert out.rstrip().endswith("True")
    for stage in ("reading", "passes", "lowering", "IREE"):
        assert f", {stage}" in ran.shown or "…" in ran.shown, stage
    # the line is removed once at the end of each step, where the cursor is shown again
    assert ran.shown.count("\x1b[1A") == ran.shown.count("\x1b[?25h"), "more than one line"
    assert re.search(r"0:00:0\d", ran.shown)
    assert re.search(r"compile +\d+\.\d{3} s 100\.0%", ran.shown)


def test_kernels_are_counted(model: Path, tmp_path: Path) -> None:
    ran = Terminal(tmp_path, "compile", str(model), "--cpu", columns=200)
    ran.end()
    counts = [tuple(map(int, m)) for m in re.findall(r"IREE: (\d+) of (\d+) kernels", ran.shown)]
    assert counts, ran.shown[-2000:]
    assert counts == sorted(counts)
    assert len({total for _, total in counts}) == 1


@pytest.mark.parametrize("how", ["MGX_PROGRESS", "pipe", "level"])
def test_silence(how: str, tmp_path: Path) -> None:
    """rich is not loaded either, which takes 0.1 s."""
    model = convolutions(tmp_path / "m.onnx", 1)
    words = ["compile", str(model), "--cpu", *(["--log-level", "warn"] if how == "level" else [])]
    if how == "pipe":
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, *words], capture_output=True, text=True, check=True,
            env={**os.environ, "MGX_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        out, shown = done.stdout, done.stderr
    else:
        more = {"MGX_PROGRESS": "0"} if how == "MGX_PROGRESS" else {}
        ran = Terminal(tmp_path, *words, **more)
        out, shown = ran.end(), ran.shown
    assert out.rstrip().endswith("False")
    assert "Compiling" not in shown.replace("Compiling ...", "")


@pytest.mark.parametrize("when", ["passes", "IREE"])
def test_an_interrupt_ends_it_and_leaves_nothing(when: str, model: Path, tmp_path: Path) -> None:
    ran = Terminal(tmp_path, "compile", str(model), "--cpu", columns=200)
    ran.read(f", {when}")
    start = time.monotonic()
    os.write(ran.master, b"\x03")
    ran.end()
    took = time.monotonic() - start
    assert ran.process.returncode == 130, ran.shown[-2000:]
    assert "interrupted" in ran.shown
    assert "Traceback" not in ran.shown
    assert took < 5  # half a second on an idle machine
    end = time.monotonic() + 10
    while ran.others() and time.monotonic() < end:
        time.sleep(0.05)
    assert not ran.others()
    assert not list(ran.temporary.iterdir())
    assert not list((tmp_path / "cache").rglob(".*"))


def test_time_report_as_json(driver: Driver, model: Path) -> None:
    ran = driver("compile", "--cpu", model, "--time-report", "json", "--no-cache")
    assert ran.status == 0
    found = json.loads(ran.errors[-1])
    phases = [found[k] for k in ("import_s", "passes_s", "lowering_s", "iree_s")]
    assert 0 < sum(phases) <= found["total_s"]
    assert found["target"] == "cpu"
    assert found["kernels"] > 0 == found["kernels_found"]


def test_listeners_nest_and_count() -> None:
    inner, outer = list[str](), list[str]()
    progress.stage("nobody is told")
    with progress.watched(lambda now: outer.append(str(now))):
        with progress.watched(lambda now: inner.append(str(now))):
            progress.stage("IREE")
            progress.compiled(1)
            progress.kernels(5, 2)
            progress.compiled(2)
            progress.compiled(2)
        progress.stage("reading")
    assert inner == [
        "IREE", "IREE: 1 kernel", "IREE: 3 of 5 kernels, 2 cached",
        "IREE: 5 of 5 kernels, 2 cached", "IREE: 5 of 5 kernels, 2 cached",
    ]  # fmt: skip
    assert outer == [*inner, "reading"]

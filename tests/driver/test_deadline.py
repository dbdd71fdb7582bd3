"""--timeout reaches the reader and the passes."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from mgx_mlir.core.errors import CompileError, MgxError
from mgx_mlir.tools.driver import deadline
from mgx_mlir.tools.driver.deadline import within
from mgx_mlir.tools.driver.main import main
from tests.formats.greedy import long_line, model, n


def test_a_reader_that_takes_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import mgx_mlir.frontends.onnx.importer as importer

    real = importer.Importer.node

    def slow(*args: object) -> None:
        time.sleep(0.05)
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(importer.Importer, "node", slow)
    monkeypatch.setattr(deadline, "GRACE", 0.0)
    path = tmp_path / "m.onnx"
    nodes = [n("Relu", f"t{i}" if i else "x", f"t{i + 1}") for i in range(400)]
    path.write_bytes(model(nodes, unused=long_line(2)))
    start = time.perf_counter()
    assert main(["compile", str(path), "--cpu", "--no-cache", "--timeout", "1"]) == 2
    assert time.perf_counter() - start < 10
    assert "error: the model was not compiled within 1 s" in capsys.readouterr().err


def test_nothing_holds_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that turns exceptions into errors of its own does not keep it."""
    before = signal.getsignal(signal.SIGALRM)

    def stubborn() -> None:
        with within(0.1):
            while True:
                try:
                    time.sleep(1)
                except (MgxError, Exception):
                    continue

    monkeypatch.setattr(deadline, "GRACE", 0.0)
    with pytest.raises(CompileError, match=r"within 0\.1 s"):
        stubborn()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_other_threads_are_not_interrupted() -> None:
    done = []

    def run() -> None:
        with within(0.01):
            time.sleep(0.1)
            done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done

"""The end of the interpreter, behind calls whose code the workers still hold."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.runtime import code_memory
from tests.support.models import parsed

WIDE = 512  # two threads work


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = f"(float[{WIDE},{WIDE}] x) => (float[{WIDE},{WIDE}] y) {{ y = MatMul (x, w) }}"
    model = parsed(text, {"w": 2 * np.eye(WIDE)})
    path = tmp_path_factory.mktemp("ending") / "m.mxr"
    mgx_mlir.save(mgx_mlir.compile(model, "cpu", threads=2), path)
    return path


def out() -> int:
    return sum(ref() is not None for ref, _ in code_memory._closed)


def test_code_comes_back(saved: Path) -> None:
    """A program that stays can be used behind the end's waiting, which others may do at exit."""
    x = {"x": np.ones((WIDE, WIDE), np.float32)}
    kept = mgx_mlir.load(saved)
    kept.run(x)
    for _ in range(20):
        mgx_mlir.load(saved).run(x)  # dropped at once
    assert code_memory.settle()
    assert out() == 0
    np.testing.assert_array_equal(kept.run(x)[0], 2 * x["x"])


def test_the_end_waits_for_a_worker() -> None:
    class Runtime:
        class VmModule:
            @staticmethod
            def wrap_buffer(_: object, memory: memoryview) -> memoryview:
                held.append(memory)
                return memory

    held: list[memoryview] = []
    code = code_memory.Code(Runtime, None, np.zeros(64, np.uint8))
    code.close()
    assert not code_memory.settle(0.05)
    began = time.monotonic()
    threading.Timer(0.2, held.clear).start()
    assert code_memory.settle()
    assert time.monotonic() - began > 0.15


def test_a_process_ends_well(saved: Path) -> None:
    """One in four aborted on a busy machine: code 134, after a run that was right."""
    text = """
import sys, numpy as np, mgx_mlir
x = {"x": np.ones((512, 512), np.float32)}
assert mgx_mlir.load(sys.argv[1]).run(x)[0][-1][-1] == 2
kept = mgx_mlir.load(sys.argv[1])
kept.run(x), kept.run(x), kept.run(x)
"""
    runs = [subprocess.Popen([sys.executable, "-c", text, str(saved)]) for _ in range(6)]
    assert [run.wait() for run in runs] == [0] * 6

"""The guards: what they stop, and programs that must not be stopped by them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime import guarded

pytestmark = pytest.mark.skipif(guarded.compiler() is None, reason="guards cannot be built here")

PRELUDE = """
import ctypes, sys
import numpy as np
from tests.runtime import guarded
guard = guarded.watch()
"""
BEHIND = "a = np.zeros(1 << 16, np.uint8); ctypes.memset(a.ctypes.data, 1, a.nbytes + 1)"
IN_FRONT = "a = np.zeros(1 << 16, np.uint8); ctypes.memset(a.ctypes.data - 1, 1, 1); del a"
FREED = "a = np.zeros(1 << 16, np.uint8); at = a.ctypes.data; del a; ctypes.memset(at, 1, 1)"
# views are copied for the call: the copies are alive until the results are taken
VIEWS = """
from tests.runtime.test_arrays import FORMS, drawn, formed, runner
for form in FORMS:
    a, b = (formed(drawn(i, (64, 256), "float32"), form) for i in range(2))
    d, s, t = runner("cpu", "float32", "compile")(a=a, b=b)
    assert np.array_equal(d, np.asarray(a - b)) and np.array_equal(s, a), form
assert guard.guard_count() > 100 and guard.guard_refused() == 0
"""
BRANCHES = """
import mgx_mlir
from mgx_mlir.targets import branch_moves
from tests.targets.test_branch_moves import branches_of_convolutions
if {unmended}:
    branch_moves.mend = lambda vmfb: vmfb
model = branches_of_convolutions(64).SerializeToString()
compiled = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
for k in (True, False):
    compiled.run(k=np.array(k), x=np.ones((1, 2, 9), np.float32))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return guarded.build(tmp_path_factory.mktemp("guard"))


def run(library: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = ["/usr/bin/env", f"LD_PRELOAD={library}", sys.executable, "-c", PRELUDE + code]
    environment = {**os.environ, "PYTHONPATH": str(guarded.ROOT)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (BEHIND, "guard: access behind a buffer of 65536 bytes, at offset 65536"),
        (IN_FRONT, "guard: written in front of a buffer of 65536 bytes, at offset -1"),
        (FREED, "guard: access after the end of a buffer of 65536 bytes, at offset 0"),
    ],
)
def test_what_is_stopped(library: Path, code: str, said: str) -> None:
    done = run(library, code)
    assert done.returncode < 0
    assert said in done.stderr


def test_views_are_alive_until_the_results_are_taken(library: Path) -> None:
    done = run(library, VIEWS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_branches_of_convolutions(library: Path) -> None:
    done = run(library, BRANCHES.format(unmended=False))
    assert done.returncode == 0, done.stderr
    done = run(library, BRANCHES.format(unmended=True))
    assert done.returncode < 0
    assert "guard: " in done.stderr

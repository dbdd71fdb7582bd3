"""Many threads read, compile, load, save, print and run at once, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process import threads

ROOT = Path(__file__).resolve().parents[2]


def in_threads(what: str, count: int, rounds: int, cache: Path) -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT), MGX_CACHE_DIR=str(cache))
    done = subprocess.run(
        [sys.executable, threads.__file__, what, str(count), str(rounds)],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize(("what", "count", "rounds"), [("parse", 12, 3), ("mixed", 8, 2)])
def test_threads(what: str, count: int, rounds: int, tmp_path: Path) -> None:
    in_threads(what, count, rounds, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 8, 12])
@pytest.mark.parametrize("what", threads.KINDS)
def test_threads_of_every_kind(what: str, count: int, tmp_path: Path) -> None:
    for _ in range(3):  # repeat, so that first calls of a process happen again
        in_threads(what, count, 4, tmp_path)

"""Mixed work leaves memory, open files and threads as they were."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.run import ROOT


@pytest.mark.parametrize("seconds", [pytest.param(600, marks=pytest.mark.slow)])
def test_mixed_work_leaves_nothing_behind(seconds: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.soak", str(seconds)],
        cwd=ROOT, capture_output=True, text=True, timeout=3 * seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"

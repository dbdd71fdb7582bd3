"""A process forked after a program ran: its child runs and compiles as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgx_mlir.core.errors import TargetError
from mgx_mlir.runtime.device import Device

CASES = ("run_then_run", "run_then_compile", "fork_in_a_thread", "pools", "amid_first_calls")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_children(case: str, threads: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.forked", case, str(threads)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_gpu_of_the_parent_is_an_error_at_once() -> None:
    device = Device("hip", 1, None, fork=-1)
    assert device.is_lost
    with pytest.raises(TargetError, match="before this process was forked"):
        device.check()
    assert not Device("local-sync", 1, None, fork=-1).is_lost

"""A process forked after a program ran: its child runs and compiles as well."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mgx_mlir.core import forks
from mgx_mlir.core.errors import RunError, TargetError
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


def test_a_child_that_is_forked_amid_a_long_load_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_LONGEST_WAIT", 0.05)
    inside, end = threading.Event(), threading.Event()

    def load() -> None:
        with forks.loading():
            inside.set()
            end.wait()

    thread = threading.Thread(target=load)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        try:
            forks.usable()
        except RunError as e:
            os._exit(0 if "forked while another thread imported modules" in str(e) else 2)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    end.set()
    thread.join()
    assert status == 0
    forks.usable()
    later = os.fork()
    if not later:
        forks.usable()
        os._exit(0)
    assert os.waitpid(later, 0)[1] == 0


FOREIGN = """
import os, signal, sys, threading
import mgx_mlir.core.forks
begun, end = threading.Event(), threading.Event()
thread = threading.Thread(target=__import__, args=("slow_module",))
sys.modules["__main__"].begun, sys.modules["__main__"].end = begun, end
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    end.set()
    import slow_module
    os._exit(0 if slow_module.whole else 1)
status = os.waitpid(child, 0)[1]
end.set()
thread.join()
assert status == 0, status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_imports_what_another_thread_was_importing(tmp_path: Path) -> None:
    """The module is of neither this project nor the bindings: a fork does not wait for it."""
    lines = ["import __main__", "__main__.begun.set()", "__main__.end.wait()", "whole = True"]
    (tmp_path / "slow_module.py").write_text("\n".join(lines))
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, str(tmp_path)])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

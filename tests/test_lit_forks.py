"""A command of lit that a fork runs ends and prints as one that Python was started for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="lit forks on Linux alone")
SOURCE = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
MODULES = {"mgx-opt": "mgx_mlir.tools.opt", "filecheck": "filecheck"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """A server's socket and process."""
    path = tmp_path_factory.mktemp("lit") / "socket"
    with subprocess.Popen(
        [sys.executable, str(ROOT / "lit" / "fork_server.py"), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        yield path, process.pid
        process.stdin.close()
        assert process.wait(10) == 0


def client(path: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(ROOT / "lit" / "fork_client.py"), str(path)]


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (["mgx-opt", "-"], SOURCE),
        (["mgx-opt", "in.mlir", "--mgx-dead-code-elimination"], ""),
        (["mgx-opt", "-", "--no-such-option"], SOURCE),
        (["mgx-opt", "gone.mlir"], ""),
        (["mgx-opt", "-"], "func.func @f("),
        (["filecheck", "checks"], "func.func @f"),
        (["filecheck", "checks"], "func.func @g"),
        (["filecheck", "gone"], "func.func @g"),
    ],
)
def test_a_command_ends_and_prints_the_same(
    server: tuple[Path, int], tmp_path: Path, command: list[str], given: str
) -> None:
    (tmp_path / "in.mlir").write_text(SOURCE)
    (tmp_path / "checks").write_text("// CHECK: @f\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "77"}
    started = [sys.executable, "-m", MODULES[command[0]], *command[1:]]
    own, other = (
        subprocess.run(
            c, cwd=tmp_path, env=environment, input=given, capture_output=True, text=True
        )
        for c in (started, [*client(server[0]), *command])
    )
    assert (other.returncode, other.stdout) == (own.returncode, own.stdout)
    # only the last line of what Python shows of an exception: the stack differs
    assert other.stderr.splitlines()[-1:] == own.stderr.splitlines()[-1:]


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_client_that_is_killed_takes_its_command_along(server: tuple[Path, int]) -> None:
    path, pid = server
    with subprocess.Popen([*client(path), "mgx-opt", "-"], stdin=subprocess.PIPE) as waiting:
        until = time.monotonic() + 10
        while not children(pid) and time.monotonic() < until:
            time.sleep(0.01)
        command = children(pid)
        assert len(command) == 1
        waiting.kill()
        # the pipe's other end stays dynamic: what ends the command is the client's end alone
        while children(pid) and time.monotonic() < until:
            time.sleep(0.01)
        assert children(pid) == []


def test_a_command_that_is_killed_ends_its_client_so(server: tuple[Path, int]) -> None:
    path, pid = server
    with subprocess.Popen([*client(path), "mgx-opt", "-"], stdin=subprocess.PIPE) as waiting:
        until = time.monotonic() + 10
        while not children(pid) and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(int(children(pid)[0]), 11)
        assert waiting.wait(10) == -11

"""Processes: number 1 of a container, many open files, one that is stopped or killed."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mgx_mlir as mgx
from mgx_mlir.compiler.tuning import solutions
from mgx_mlir.core.errors import FileError
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.targets import locks
from mgx_mlir.targets.base import BackendOptions, CpuTarget, Executable
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.diagnostics import CompileFailed
from tests.process import threads
from tests.targets import modules

ROOT = Path(__file__).resolve().parents[2]
DRIVER = [sys.executable, "-m", "mgx_mlir.tools.driver"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(threads.model(0))
    return path


def environment(cache: Path, **more: str) -> dict[str, str]:
    return dict(os.environ, PYTHONPATH=str(ROOT), MGX_CACHE_DIR=str(cache), **more)


# ---- process 1 -----------------------------------------------------------------------------------

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return not subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode


@pytest.mark.skipif(not can_unshare(), reason="this user may not make a namespace of processes")
def test_process_1_of_a_container_compiles(model: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*UNSHARE, *DRIVER, "run", str(model), "--cpu", "--no-cache"],
        env=environment(tmp_path), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_command_ends_where_its_parent_is_gone() -> None:
    worker = ROOT / "mgx_mlir/targets/worker.py"
    command = [sys.executable, str(worker), "--exec", str(os.getpid()), "/bin/echo", "here"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "here\n"
    command[3] = "1" if os.getpid() != 1 else "2"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")


# ---- many open files -----------------------------------------------------------------------------


@pytest.fixture
def many_files() -> Iterator[None]:
    """The lowest free descriptors are beyond what select() takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1400:
        pytest.skip(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1400), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for fd in held:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("use_worker", [False, True])
@pytest.mark.usefixtures("many_files")
def test_a_compile_with_many_files_open(use_worker: bool) -> None:
    compiler, flags = IreeCompiler(use_worker=use_worker), CpuTarget().ladder()[0].flags
    try:
        for _ in range(2):
            assert compiler.compile(modules.add().encode(), flags, timeout=200)
    finally:
        compiler.close()


# ---- a lock that another process has -------------------------------------------------------------

HOLDER = """
import os, signal, sys, time
from pathlib import Path
from mgx_mlir.targets.cache import Cache
with Cache(Path(sys.argv[1])).lock("module", sys.argv[2]):
    print("held", flush=True)
    if sys.argv[3] == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(100)
"""
LOWERED = Lowered(modules.add(13).encode())


@contextlib.contextmanager
def holder(root: Path, key: str, how: str) -> Iterator[int]:
    """A process that has the lock of a key, and stops or does not give it back."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root), key, how],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def compiled(root: Path, timeout: float | None) -> Executable:
    options = BackendOptions(timeout=timeout)
    return CpuTarget().compile_lowered(LOWERED, options, cache=Cache(root))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_a_stopped_compile_blocks_no_other(tmp_path: Path, caplog: Any) -> None:
    with holder(tmp_path, CpuTarget().lowered_key(LOWERED), "stop") as pid:
        assert not compiled(tmp_path, None).cached
    assert f"process {pid} compiles the same program but is stopped" in caplog.text
    assert compiled(tmp_path, None).cached


def test_waiting_for_another_compile_counts_and_is_said(tmp_path: Path, caplog: Any) -> None:
    with holder(tmp_path, CpuTarget().lowered_key(LOWERED), "hold") as pid:
        start = time.monotonic()
        with pytest.raises(CompileFailed, match=f"process {pid} is still compiling") as e:
            compiled(tmp_path, 3)
        assert 3 <= time.monotonic() - start < 30
    assert e.value.kind == "timeout"
    assert f"waiting for process {pid}" in caplog.text
    assert not compiled(tmp_path, 100).cached  # the holder is gone, and its lock with it


def test_a_stopped_search_does_not_block_the_tuning_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(solutions.VARIABLE, str(tmp_path / "t.json"))
    monkeypatch.setattr(solutions, "LOCK_WAIT", 0.5)
    solutions.keep({"name": "x"}, solutions.Tuning())
    with open(tmp_path / "t.json.lock", "a+b") as f:
        locks.acquire(f.fileno(), 1)
        with pytest.raises(FileError, match="has locked the tuning file"):
            solutions.keep({"name": "y"}, solutions.Tuning())
    solutions.keep({"name": "y"}, solutions.Tuning())
    assert solutions.solutions() == 2


# ---- kill -9 -------------------------------------------------------------------------------------

VICTIM = """
import sys
import mgx_mlir as mgx
from tests.process import threads
print("ready", flush=True)
for i in range(100):
    p = mgx.parse_onnx_buffer(threads.model(i % 3))
    p.compile("cpu", cache=True)
    mgx.save(p, sys.argv[1])
    mgx.compile(threads.model(i % 3), "cpu")
    mgx.compile(threads.model(1000 + i), "cpu")
"""


def killed(tmp_path: Path, times: int) -> None:
    """End a process that compiles and saves at random moments; whatever it leaves is whole."""
    rng, saved = random.Random(times), tmp_path / "m.mxr"
    around = environment(tmp_path / "cache")
    for _ in range(times):
        process = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(saved)],
            env=around, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 3))
        process.kill()  # kill the parent alone: its children must end by themselves
        process.wait()
        process.stdout.close()
        if saved.exists():
            p = mgx.load(saved)
            assert any(agrees(p.run, k) for k in range(3))
    with pytest.MonkeyPatch.context() as m:
        m.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
        start = time.monotonic()
        for k in (0, 1, 2, 1000, 1001):
            threads.checked(mgx.compile(threads.model(k), "cpu", timeout=100).run, k)
        assert time.monotonic() - start < 100
        # a child of the last process may hold the lock until it ends
        cache, end = Cache(tmp_path / "cache"), time.monotonic() + 60
        while list((tmp_path / "cache").rglob("locks/*")) and time.monotonic() < end:
            cache.evict()
            time.sleep(0.5)
    assert not list((tmp_path / "cache").rglob("locks/*"))


def agrees(run: Any, k: int) -> bool:
    try:
        threads.checked(run, k)
    except AssertionError:
        return False
    return True


def test_killed_at_random_moments(tmp_path: Path) -> None:
    killed(tmp_path, 3)


@pytest.mark.slow
def test_killed_a_hundred_times(tmp_path: Path) -> None:
    killed(tmp_path, 100)


# ---- a disk that is full -------------------------------------------------------------------------

FULL = """
import resource, signal, sys
import mgx_mlir as mgx
from tests.process import threads
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
p = mgx.parse_onnx_buffer(threads.model(0))
if sys.argv[2] == "save":
    p.compile("cpu")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    if sys.argv[2] == "save":
        mgx.save(p, sys.argv[1])
    else:
        threads.checked(mgx.compile(p, "cpu", cache=True).run, 0)
        print("compiled")
except mgx.MgxError as e:
    print(e)
"""


@pytest.mark.parametrize(
    ("what", "size"),
    [
        ("save", 1000),
        ("compile", 0),
        pytest.param("save", 0, marks=pytest.mark.slow),
        pytest.param("compile", 1000, marks=pytest.mark.slow),
    ],
)
def test_a_full_disk(tmp_path: Path, what: str, size: int) -> None:
    path = tmp_path / "m.mxr"
    path.write_bytes(b"what was there")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), what, str(size)],
        env=environment(tmp_path / "cache"), cwd=ROOT, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = ("file too large", "compiled", "iree-compile cannot be started")
    assert any(text in done.stdout for text in expected), done.stdout
    assert path.read_bytes() == b"what was there"
    left = [p for p in tmp_path.rglob("*") if p.is_file() and p.name.startswith(".")]
    assert left == []

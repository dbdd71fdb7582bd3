"""The compile child: results, limits, crashes, messages, reproducers, threads, forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mgx_mlir
from mgx_mlir.core.errors import CompileError, MgxError
from mgx_mlir.targets import child
from mgx_mlir.targets import worker as worker_file
from mgx_mlir.targets.child import IreeCompiler, compiler_binary
from mgx_mlir.targets.diagnostics import CompileFailed, Failure, read_failure
from mgx_mlir.targets.flags import cpu_ladder
from mgx_mlir.targets.worker import SINGLE, SINGLE_THREAD
from tests.support.models import parsed_bytes
from tests.targets.modules import FOREIGN, LOG10, UNKNOWN, add

FLAGS = cpu_ladder()[0].flags


@pytest.fixture(params=["binary", "worker"])
def compiler(request: pytest.FixtureRequest) -> IreeCompiler:
    return request.getfixturevalue(request.param)


def failure(compiler: IreeCompiler, text: str, flags: tuple[str, ...] = FLAGS, **limits: object):
    with pytest.raises(CompileFailed) as caught:
        compiler.run(text.encode(), flags, **limits)  # type: ignore[arg-type]
    assert isinstance(caught.value, CompileError)
    assert isinstance(caught.value, MgxError)
    assert "Traceback" not in str(caught.value)
    return caught.value


def test_compiles_and_says_what_it_cost(compiler: IreeCompiler) -> None:
    out = compiler.run(add().encode(), FLAGS, statistics=True)
    assert out.via == ("worker" if compiler.use_worker else "binary")
    assert len(out.vmfb) > 1000
    assert 0 < out.seconds < 60
    assert 30 << 20 < out.peak_memory < 2 << 30
    assert "main_dispatch_0" in out.reports["statistics"]
    assert compiler.compile(add().encode(), FLAGS)[:4] == out.vmfb[:4]
    assert compiler.run(add().encode(), FLAGS).reports == {}


def test_bad_flags_are_named(compiler: IreeCompiler) -> None:
    e = failure(compiler, add(), (*FLAGS, "--iree-opt-data-tilling"))
    assert e.kind == "flags"
    assert "'--iree-opt-data-tilling'" in e.message
    assert e.notes == ("did you mean '--iree-opt-data-tiling'?",)
    e = failure(compiler, add(), (*FLAGS, "--iree-opt-level=O9"))
    assert "not a valid optimization level" in e.message
    e = failure(compiler, add(), cpu_ladder(cpu="znver9")[0].flags)
    assert e.message == "unknown CPU 'znver9' for x86_64" or os.uname().machine != "x86_64"


def test_a_flag_only_the_command_line_knows_works_too(compiler: IreeCompiler) -> None:
    out = compiler.run(add().encode(), (*FLAGS, "--mlir-disable-threading"))
    assert out.via == "binary"


@pytest.mark.parametrize("text", [FOREIGN, UNKNOWN, "hello world", "func.func @main("])
def test_what_is_not_a_module_is_refused(compiler: IreeCompiler, text: str) -> None:
    e = failure(compiler, text)
    assert e.kind == "input"
    if text is UNKNOWN:
        assert "linalg.nope" in e.message
        assert "model.onnx:7:0" in str(e)


def test_a_crash_says_so(binary: IreeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IreeCompiler, "_explain", staticmethod(lambda failure, path: failure))
    e = failure(binary, FOREIGN)
    assert e.kind == "crash"
    assert "crashed with SIG" in e.message
    binary.compile(add().encode(), FLAGS)


def test_a_worker_that_dies_is_replaced(worker: IreeCompiler) -> None:
    worker.compile(add().encode(), FLAGS)
    for w in worker._idle:
        w.process.kill()
        w.process.wait()
    assert worker.run(add().encode(), FLAGS).via == "worker"


@pytest.mark.parametrize(("value", "verify"), [(None, False), ("1", True), ("0", False)])
def test_a_worker_verifies_where_it_is_told_to(
    worker: IreeCompiler, monkeypatch: pytest.MonkeyPatch, value: str | None, verify: bool
) -> None:
    send, seen = worker_file.send, []

    def noted(stream: Any, header: dict[str, Any], payload: bytes = b"") -> None:
        seen.append(header["verify"])
        send(stream, header, payload)

    monkeypatch.delenv(worker_file.VERIFY, raising=False)
    if value is not None:
        monkeypatch.setenv(worker_file.VERIFY, value)
    monkeypatch.setattr(worker_file, "send", noted)
    made = worker.run(add().encode(), FLAGS)
    assert (made.via, seen) == ("worker", [verify])
    assert made.vmfb


INVALID_AT_LAST = """func.func @main(%x: tensor<?xf32>) -> tensor<2xf64> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %n = arith.index_cast %d : index to i64
  %c2 = arith.constant 2 : i64
  %b = arith.cmpi sgt, %n, %c2 : i64
  %y = arith.uitofp %b : i1 to f64
  %z = arith.constant 3.0 : f64
  %t = tensor.from_elements %y, %z : tensor<2xf64>
  return %t : tensor<2xf64>
}
"""


def test_what_all_passes_made_is_verified_in_any_case(
    worker: IreeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IREE gives an f64 the bytes of an f32 here, which its verifier alone refuses."""
    monkeypatch.delenv(worker_file.VERIFY, raising=False)
    for compiler in (worker, IreeCompiler(use_worker=False)):
        with pytest.raises(CompileFailed, match=r"vm\.cast\.ui32\.f32"):
            compiler.run(INVALID_AT_LAST.encode(), FLAGS)


def test_a_large_module_waits_for_a_worker(reproducers: Path) -> None:
    """The first compile as well: the binary would verify after each pass."""
    compiler = IreeCompiler(reproducers=reproducers)
    large = add() + "// a comment\n" * 5000
    assert compiler.run(large.encode(), FLAGS).via == "worker"
    compiler.close()


def test_a_worker_killed_at_work_is_a_crash(
    worker: IreeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compile is run once more, by the binary."""
    send = worker_file.send

    def killed(stream: object, *frame: object) -> None:
        send(stream, *frame)  # type: ignore[arg-type]
        for pid in started:
            os.kill(pid, signal.SIGKILL)

    worker.compile(add().encode(), FLAGS)
    started = [w.process.pid for w in worker._idle[-1:]]
    monkeypatch.setattr(worker_file, "send", killed)
    made = worker.run(add(1 << 20).encode(), FLAGS)
    assert made.via == "binary"
    assert made.crashes == ("iree-compile crashed with SIGKILL",)


@pytest.fixture
def on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles have the threads that a user's have."""
    monkeypatch.delenv(SINGLE, raising=False)


@pytest.fixture
def dying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_several_threads: None
) -> IreeCompiler:
    """A compiler that dies of SIGFPE on several threads; with --die it does on one, too."""
    script = tmp_path / "iree-compile"
    script.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *--die*) kill -FPE $$;; *{SINGLE_THREAD}*) exec {compiler_binary()} "$@";;\n'
        "*) kill -FPE $$;; esac\n"
    )
    script.chmod(0o700)
    monkeypatch.setattr(child, "compiler_binary", lambda: script)
    return IreeCompiler(use_worker=False)


SAFE = (*FLAGS, SINGLE_THREAD)


def test_a_compiler_that_dies_is_run_again_on_one_thread(
    dying: IreeCompiler, caplog: pytest.LogCaptureFixture
) -> None:
    made = dying.run(add().encode(), FLAGS, statistics=True)
    assert made.crashes == ("iree-compile crashed with SIGFPE",)
    assert made.flags == FLAGS
    assert made.vmfb[:4] == IreeCompiler(use_worker=False).compile(add().encode(), SAFE)[:4]
    assert "main_dispatch_0" in made.reports["statistics"]
    assert "on one thread it compiled the module" in caplog.text


def test_a_compiler_that_dies_on_one_thread_too_is_a_failure(dying: IreeCompiler) -> None:
    e = failure(dying, add(), ("--die",))
    assert e.kind == "crash"
    assert "SIGFPE" in e.message


REFUSAL = """\
<buffer>:55:0: error: 'linalg.generic' op tile size analysis did not determine a valid tile size
<buffer>:55:0: error: failed to run translation of source executable to target executable
"""
STACK = REFUSAL.replace("tile size analysis did", "exceeded stack allocation limit and did")


@pytest.mark.parametrize(
    ("text", "runs"),
    [(REFUSAL, 2), (STACK, 1), ("input.mlir:1:1: error: constant is too large\n", 1)],
    ids=["kernel", "stack", "other"],
)
@pytest.mark.usefixtures("on_several_threads")
def test_a_kernel_that_is_refused_is_compiled_again_on_one_thread(
    text: str, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error like this may be a race of threads; the other errors are reproducible."""
    said, count = tmp_path / "said", tmp_path / "count"
    said.write_text(text)
    script = tmp_path / "iree-compile"
    script.write_text(
        f'#!/bin/sh\necho run >> {count}\ncase "$*" in\n'
        f'*{SINGLE_THREAD}*) exec {compiler_binary()} "$@";;\nesac\ncat {said} >&2; exit 1\n'
    )
    script.chmod(0o700)
    monkeypatch.setattr(child, "compiler_binary", lambda: script)
    compiler = IreeCompiler(use_worker=False)
    if runs == 2:
        made = compiler.run(add().encode(), FLAGS)
        assert made.flags == FLAGS
        assert len(made.crashes) == 1
        assert "tile size analysis" in made.crashes[0]
    else:
        assert failure(compiler, add(), FLAGS).kind == "compile"
    assert count.read_text() == "run\n" * runs


def test_the_second_run_has_what_is_left_of_the_time(
    dying: IreeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    inner = IreeCompiler._in_binary

    def spy(
        self: IreeCompiler, source: bytes, flags: tuple[str, ...], timeout: float, *rest: Any,
        **others: Any,
    ) -> Any:  # fmt: skip
        limits.append(timeout)
        return inner(self, source, flags, timeout, *rest, **others)

    monkeypatch.setattr(IreeCompiler, "_in_binary", spy)
    dying.run(add().encode(), FLAGS, timeout=100.0)
    assert limits[0] == 100.0
    assert limits[1] < 100.0


def test_a_program_counts_the_crashes_of_its_compile(
    dying: IreeCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program from the cache has the count of the compile that made it."""
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(child, "_shared", dying)
    program = mgx_mlir.compile(subtraction(), target="cpu")
    assert program.stats.iree_crashes == 1
    assert program.executable.crashes == ("iree-compile crashed with SIGFPE",)
    again = mgx_mlir.compile(subtraction(), target="cpu")
    assert again.stats.cached
    assert again.executable.crashes == program.executable.crashes


def subtraction() -> bytes:
    """A small ONNX model."""
    return parsed_bytes("(float[3] a, float[3] b) => (float[3] c) { c = Sub (a, b) }")


def test_code_generation_failure_names_the_node_and_leaves_a_reproducer(
    compiler: IreeCompiler,
) -> None:
    e = failure(compiler, LOG10)
    assert e.kind == "compile"
    assert "undefined symbol: log10f" in e.message
    assert e.location == "model.onnx:12:0"
    assert e.reproducer is not None
    assert f"sh {e.reproducer}/command.sh" in e.notes[-1]
    done = subprocess.run(
        ["sh", f"{e.reproducer}/command.sh"], capture_output=True, check=False, cwd=e.reproducer
    )
    assert done.returncode != 0
    assert b"log10f" in done.stderr
    assert Path(e.reproducer, "input.mlir").read_text() == LOG10


def group_members(pgid: int) -> list[int]:
    out = subprocess.run(["ps", "-eo", "pid,pgid,stat"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in out.stdout.splitlines()[1:]]
    return [int(p) for p, g, s in rows if int(g) == pgid and not s.startswith("Z")]


def test_timeout_ends_the_whole_group(
    compiler: IreeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = [w.process.pid for w in compiler._idle[-1:]]  # the one that will be taken
    popen = subprocess.Popen

    def spy(*a: object, **k: object) -> object:
        p = popen(*a, **k)  # type: ignore[call-overload]
        started.append(p.pid)
        return p

    monkeypatch.setattr(subprocess, "Popen", spy)
    start = time.monotonic()
    e = failure(compiler, add(1 << 16), timeout=0.04)
    assert e.kind == "timeout"
    assert "0.04 seconds" in e.message
    assert time.monotonic() - start < 3  # a worker may have to start first
    children = list(started)
    assert children
    assert all(group_members(p) == [] for p in children)
    compiler.compile(add().encode(), FLAGS)


def test_memory_limit(compiler: IreeCompiler) -> None:
    e = failure(compiler, add(), memory_limit=40 << 20)
    assert e.kind == "memory"
    assert "0.04 GiB" in e.message
    compiler.compile(add().encode(), FLAGS, memory_limit=2 << 30)


def test_many_threads(reproducers: Path) -> None:
    compiler = IreeCompiler(max_workers=2, reproducers=reproducers)
    done: list[str] = []

    def work(n: int) -> None:
        done.append(compiler.run(add(n).encode(), FLAGS).via)

    pool = [threading.Thread(target=work, args=(8 + i,)) for i in range(6)]
    for t in pool:
        t.start()
    for t in pool:
        t.join(60)
    assert len(done) == 6
    assert compiler._busy == 0
    assert len(compiler._idle) + len(compiler._starting) <= 2
    compiler.close()


def test_the_first_compile_runs_the_binary(reproducers: Path) -> None:
    compiler = IreeCompiler(reproducers=reproducers)
    assert compiler.run(add().encode(), FLAGS).via == "binary"
    assert compiler._starting == compiler._idle == []
    deadline = time.monotonic() + 30
    via = ""
    while via != "worker" and time.monotonic() < deadline:
        via = compiler.run(add().encode(), FLAGS).via
    compiler.close()
    assert via == "worker"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_use_the_parent_s_worker(worker: IreeCompiler) -> None:
    worker.compile(add().encode(), FLAGS)
    before = [w.process.pid for w in worker._idle]
    pid = os.fork()
    if pid == 0:  # the child must leave without pytest's ending
        try:
            os._exit(0 if worker._acquire(("--no-such",), 100) not in worker._idle else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert [w.process.pid for w in worker._idle] == before
    assert worker.run(add().encode(), FLAGS).via == "worker"


def test_a_crash_without_a_stack_is_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one thread, where the stack says what failed."""
    seen: list[tuple[str, ...]] = []

    def crash(
        self: IreeCompiler, source: bytes, flags: tuple[str, ...], *_: object, **others: object
    ) -> None:
        seen.append(flags)
        known = "kernel" if SINGLE_THREAD in flags else "other"
        raise CompileFailed(Failure("crash", "iree-compile crashed", cause=known))

    monkeypatch.setattr(IreeCompiler, "_in_binary", crash)
    with pytest.raises(CompileFailed) as caught:
        IreeCompiler(use_worker=False).run(b"", ("--a",), reproducer=False)
    assert caught.value.cause == "kernel"
    assert seen == [("--a",), ("--a", SINGLE_THREAD)]


def test_workers_end_with_their_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = (
        "import os, signal\n"
        "from mgx_mlir.targets.child import IreeCompiler\n"
        "from mgx_mlir.targets.flags import cpu_ladder\n"
        "c = IreeCompiler(use_worker=True)\n"
        f"c.compile({add()!r}.encode(), cpu_ladder()[0].flags)\n"
        "assert os.listdir(os.environ['TMPDIR'])\n"
        "print(c._idle[0].process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert_ends_with_its_parent(code)
    assert os.listdir(tmp_path) == []  # children leave no files


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no parent death signal")
def test_the_binary_ends_with_its_parent() -> None:
    code = (
        "import os, signal, subprocess, sys, time\n"
        "from pathlib import Path\n"
        "from mgx_mlir.targets import worker\n"
        "command = [sys.executable, worker.__file__, '--exec', str(os.getpid())]\n"
        "command += ['/bin/sleep', '100']\n"
        "process = subprocess.Popen(command, start_new_session=True)\n"
        "name = Path(f'/proc/{process.pid}/comm')\n"
        "while name.read_text() != 'sleep\\n':\n"
        "    time.sleep(0.01)\n"
        "print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert_ends_with_its_parent(code)


def assert_ends_with_its_parent(code: str) -> None:
    """Run code that prints a child's number and kills itself; the child must be gone soon."""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False, timeout=60
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while group_members(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert group_members(pid) == []


def test_plugins_of_other_formats_and_machines_are_not_loaded(compiler: IreeCompiler) -> None:
    """Every set of patterns would be built by a walk over their ops."""
    other = tuple(f.replace("device=local", "device=vulkan") for f in FLAGS)
    assert 'unregistered device alias "vulkan"' in failure(compiler, add(), other).message


def test_reading_stderr() -> None:
    f = read_failure("a.onnx:3:0: error: first\na.onnx:3:0: error: first\nb:1:2: error: two\n", 1)
    assert (f.kind, f.location, f.message) == ("compile", "a.onnx:3:0", "iree-compile: first")
    assert f.notes == ("two",)
    assert read_failure("", -9).message == "iree-compile crashed with SIGKILL"
    assert "no message" in read_failure("", 3).message
    f = read_failure('error: "n"("m.onnx":4:0): unregistered operation x', 1)
    assert (f.kind, f.location) == ("input", "n(m.onnx:4:0)")


def test_the_compiler_is_the_wheel_s() -> None:
    assert compiler_binary().name.startswith("iree-compile")

"""iree-compile in a child process: the binary, or a worker that serves many compiles.

A compile can crash, hang or eat all memory; in a child process it can only raise CompileFailed. The
first compile of a process runs the binary, which starts at once. From the second on a worker
process is used, which saves the start and the validation's imports.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import CompileError, FileError, TargetError
from mgx_mlir.targets import worker as worker_file
from mgx_mlir.targets.cache import cache_root
from mgx_mlir.targets.diagnostics import CompileFailed, Failure, read_failure, warnings
from mgx_mlir.targets.private import make_private
from mgx_mlir.targets.process import (
    DEFAULT_MEMORY_LIMIT,
    HAS_PROC,
    Watch,
    exit_poll,
    kill_group,
    readable,
)
from mgx_mlir.targets.worker_process import Worker

log = logging.getLogger(__name__)

# bytes of a module from which the first compile waits for a worker (0.1 s): a worker verifies once
# after all passes, the binary after each pass, which takes a third of the compile
_LARGE = 50_000
_WORKER_MAX_RSS = 800 << 20  # a larger worker is ended after its request
_WORKER_MAX_USES = 1000
_MAX_REPRODUCERS = 50


@dataclass(frozen=True)
class CompileOutput:
    """A compiled module: the .vmfb bytes, how it was made, and what it cost."""

    vmfb: bytes
    flags: tuple[str, ...]
    seconds: float
    peak_memory: int  # peak resident bytes of IREE; 0 if unknown
    via: str  # processes of the compile: "binary", "worker", or "workers": kernels apart
    warnings: tuple[str, ...] = ()
    # text files that IREE wrote beside the module, by name
    reports: Mapping[str, str] = field(default_factory=dict)
    # failures of IREE before it compiled this on one thread
    crashes: tuple[str, ...] = ()
    # names of launches in the runtime, where they differ: kernels in libraries
    symbols: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def compiler_binary() -> Path:
    """Return the iree-compile of the installed wheel. Errors: TargetError when it is missing."""
    spec = importlib.util.find_spec("iree.compiler")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in ("iree-compile", "iree-compile.exe"):
            path = Path(folder) / "_mlir_libs" / name
            if path.exists():
                return path
    raise TargetError(
        "iree-compile is not installed", notes=["pip install iree-base-compiler==3.13.0"]
    )


def worker_digest(folder: Path) -> str:
    """Return a digest of the workers' source files, which change modules between IREE's phases."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.glob("worker*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


@functools.cache
def compiler_version() -> str:
    """Return IREE's exact version, part of every cache key."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    try:
        stamp = compiler_binary().stat()
        return f"{version('iree-base-compiler')}-{stamp.st_size}"
    except PackageNotFoundError as e:
        raise TargetError(
            "iree-base-compiler is not installed",
            notes=["pip install iree-base-compiler==3.13.0"],
        ) from e


@functools.cache
def code_version() -> str:
    """Return the versions that compiled code depends on: IREE's, and the workers'."""
    return f"{compiler_version()} {worker_digest(Path(worker_file.__file__).parent)}"


class IreeCompiler:
    """Compiles MLIR with IREE in child processes; safe to use from many threads.

    use_worker: True, False, or None: from the second compile of the process on.
    reproducers: where the input and command of a failed compile are written; None: nowhere.
    """

    def __init__(
        self,
        *,
        use_worker: bool | None = None,
        max_workers: int | None = None,
        reproducers: Path | None = None,
    ) -> None:
        self.use_worker = use_worker if os.name == "posix" else False
        self.max_workers = max_workers or max(1, min(4, os.cpu_count() or 1))
        self.reproducers = reproducers
        self._lock = forks.lock()
        self._idle: list[Worker] = []
        self._starting: list[Worker] = []
        self._apart: list[Worker] = []  # idle workers for separate kernels and host modules
        self._busy = 0
        self._compiles = 0
        self._pid = os.getpid()
        self._binary_only: set[tuple[str, ...]] = set()  # flags that workers refuse

    # ------------------------------------------------------------------ the public calls

    def compile(
        self,
        bytecode: bytes,
        flags: Sequence[str],
        *,
        timeout: float | None = None,
        memory_limit: int | None = DEFAULT_MEMORY_LIMIT,
    ) -> bytes:
        """Compile an MLIR module (bytecode or text) to a .vmfb. Errors: as `run`."""
        return self.run(bytecode, flags, timeout=timeout, memory_limit=memory_limit).vmfb

    @interrupts.held
    def run(
        self,
        source: bytes,
        flags: Sequence[str],
        *,
        timeout: float | None = None,
        memory_limit: int | None = DEFAULT_MEMORY_LIMIT,
        reproducer: bool = True,
        statistics: bool = False,
    ) -> CompileOutput:
        """Compile, and return the output with its costs.

        timeout: seconds. memory_limit: resident bytes of IREE's processes.
        If IREE is killed by a signal, or refuses a kernel, it runs once more on one thread within
        the time limit, as some failures need several threads. Only that run verifies the module
        after each pass, which takes a third of a compile; MGX_COMPILE_VERIFY=1 does so always.
        statistics: also return IREE's table of dispatches as `reports["statistics"]`.
        Errors: CompileFailed (kind: flags, input, compile, crash, timeout, memory), with a
        note that names the reproducer; CompileError when no process or temporary file can be made;
        TargetError when IREE is not installed.
        """
        flags = tuple(flags)
        if memory_limit is not None and not HAS_PROC and memory_limit != DEFAULT_MEMORY_LIMIT:
            raise TargetError("a memory limit cannot be held on this system: it has no /proc")
        limits, start = (timeout, memory_limit), time.monotonic()
        try:
            worker = self._acquire(flags, len(source))
            if worker is not None:
                output = self._in_worker(worker, source, flags, *limits, statistics)
                if output is not None:
                    return output
            return self._in_binary(source, flags, *limits, statistics)
        except CompileFailed as e:
            if _may_be_a_race(e):
                left = None if timeout is None else timeout - (time.monotonic() - start)
                again = self._on_one_thread(source, flags, left, memory_limit, statistics)
                if isinstance(again, CompileOutput):
                    log.warning("%s; on one thread it compiled the module", e.message)
                    return replace(again, flags=flags, crashes=(e.message,))
                e = again or e
            if reproducer:
                e = self.with_reproducer(e, source, flags)
            raise e from None
        except OSError as e:
            raise _no_child(e) from e

    def _on_one_thread(
        self,
        source: bytes,
        flags: tuple[str, ...],
        timeout: float | None,
        memory_limit: int | None,
        statistics: bool,
    ) -> CompileOutput | CompileFailed | None:
        """Repeat a failed compile on one thread; return its output, or its own failure.

        Some failures need several threads (docs/iree-hazards.md, hazard 26). Others print no stack
        where several threads crash at once, and a stack shows the cause. None where it ends in
        another way.
        """
        if worker_file.SINGLE_THREAD in flags or (timeout is not None and timeout <= 0):
            return None
        try:
            alone = (*flags, worker_file.SINGLE_THREAD)
            return self._in_binary(source, alone, timeout, memory_limit, statistics)
        except CompileFailed as e:
            return e if e.kind in ("crash", "input") else None

    @interrupts.held
    def close(self) -> None:
        """End the idle workers."""
        with self._lock:
            if self._pid != os.getpid():
                self._forget()
            workers = [*self._idle, *self._starting, *self._apart]
            self._idle, self._starting, self._apart = [], [], []
        for w in workers:
            w.close()

    # ------------------------------------------------------------------ the worker

    def _forget(self) -> None:
        """Drop the workers after a fork, without touching them: they belong to the parent."""
        self._idle, self._starting, self._apart = [], [], []
        self._busy, self._pid = 0, os.getpid()

    def lease(self, *flags: str) -> Worker:
        """Return a worker for separate kernels and host modules, an idle or a new one.

        flags: those of the worker's process (worker.OF_PROCESS). Give it back with `give`.
        Errors: OSError where no process can be started.
        """
        with interrupts.waiting(self._lock):
            if self._pid != os.getpid():
                self._forget()
            for found in [w for w in self._apart if w.modes == ("apart", *flags)]:
                self._apart.remove(found)
                if found.process.poll() is None:
                    return found
                found.close()
        return Worker("apart", *flags)

    def prepare(self, count: int, *flags: str) -> None:
        """Start workers for `lease`, which takes a third of a second, until there are `count`."""
        if self.use_worker is False:
            return
        with self._lock:
            if self._pid != os.getpid():
                self._forget()
            modes = ("apart", *flags)
            missing = count - sum(w.modes == modes for w in self._apart)
        try:
            for _ in range(missing):
                self.give(Worker(*modes), alive=True)
        except OSError as e:
            log.info("no worker is started ahead of its work: %s", e)  # the compile will report it

    def give(self, worker: Worker, *, alive: bool) -> None:
        """Return a leased worker. alive: it waits for a request."""
        keep = alive and worker.uses < _WORKER_MAX_USES and worker.rss < _WORKER_MAX_RSS
        with self._lock:
            if keep and self._pid == os.getpid():
                self._apart.append(worker)
                return
        worker.close()

    def _acquire(self, flags: tuple[str, ...], size: int) -> Worker | None:
        """Return a ready worker, or None when the binary shall be used.

        size: bytes of the module.
        """
        with interrupts.waiting(self._lock):
            if self._pid != os.getpid():
                self._forget()
            self._compiles += 1
            if self.use_worker is False or flags in self._binary_only:
                return None
            awaited = self.use_worker or size >= _LARGE
            if not awaited and self._compiles < 2:
                return None
            for w in list(self._starting):
                if w.process.poll() is not None:
                    self._starting.remove(w)
                    w.close()
                elif w.ready():
                    self._starting.remove(w)
                    self._idle.append(w)
            found = None
            while self._idle and found is None:
                w = self._idle.pop()
                if w.process.poll() is None:
                    found = w
                else:
                    w.close()  # the worker ended after its idle time
            count = len(self._starting) + len(self._idle) + self._busy
            if found is None and count < self.max_workers:
                w = Worker()
                if awaited:
                    found = self._awaited(w)
                else:
                    self._starting.append(w)
            if found is not None:
                self._busy += 1
            return found

    def _awaited(self, w: Worker) -> Worker | None:
        """Wait for the worker; None where it fails to start and the binary is to be used."""
        try:
            w.wait()
        except CompileError:
            if self.use_worker:
                raise
            return None
        return w

    def _release(self, w: Worker, alive: bool) -> None:
        keep = alive and w.uses < _WORKER_MAX_USES and w.rss < _WORKER_MAX_RSS
        with self._lock:
            self._busy -= 1
            if keep:
                self._idle.append(w)
        if not keep:
            w.close()

    def _in_worker(
        self,
        w: Worker,
        source: bytes,
        flags: tuple[str, ...],
        timeout: float | None,
        memory_limit: int | None,
        statistics: bool,
    ) -> CompileOutput | None:
        """Compile in a worker; None when the flags or the worker's end call for the binary."""
        alive = False
        start = time.perf_counter()
        table = Path(w.folder, "statistics.csv")
        asked = [*flags, *statistics_flags(table)] if statistics else list(flags)
        try:
            stdin, stdout = w.process.stdin, w.process.stdout
            assert stdin is not None
            assert stdout is not None
            w.uses += 1
            try:
                request = {"flags": asked, "verify": verifies()}
                worker_file.send(cast(BinaryIO, stdin), request, source)
            except (BrokenPipeError, OSError):
                return None
            watch = Watch(w.process.pid, timeout, memory_limit)
            outcome = watch.wait(lambda s: readable(stdout, s))
            if outcome != "done":
                raise CompileFailed(limit_failure(outcome, timeout, memory_limit))
            frame = worker_file.receive(cast(BinaryIO, stdout))
            errors = w.take_errors()
            if frame is None:
                status = w.process.wait()
                if status == 0:
                    return None
                raise CompileFailed(read_failure(errors, status))
            header, payload = frame
            alive = True
            w.rss = header["rss"]
            status = header["status"]
            if status == "flags":
                # a flag that only the binary knows, or a wrong one, which the binary reports
                self._binary_only.add(flags)
                return None
            if status == "input":
                failure = read_failure(payload.decode(errors="replace"), 1)
                raise CompileFailed(replace(failure, kind="input"))
            if status != "ok":
                raise CompileFailed(read_failure(errors, None))
            seconds = time.perf_counter() - start
            peak = header["peak"] or watch.peak
            return CompileOutput(
                payload, flags, seconds, peak, "worker", warnings(errors), read_report(table)
            )
        finally:
            self._release(w, alive)

    # ------------------------------------------------------------------ the binary

    def _in_binary(
        self,
        source: bytes,
        flags: tuple[str, ...],
        timeout: float | None,
        memory_limit: int | None,
        statistics: bool,
    ) -> CompileOutput:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="mgx-compile-") as folder:
            is_bytecode = source[:4] == b"ML\xefR"
            path = Path(folder, "input.mlirbc" if is_bytecode else "input.mlir")
            path.write_bytes(source)
            out, table = Path(folder, "module.vmfb"), Path(folder, "statistics.csv")
            asked = [*flags, *statistics_flags(table)] if statistics else list(flags)
            options = [o for o in worker_file.process_options() if o not in flags]
            command = _command(source, asked, options, path, out)
            with open(os.path.join(folder, "stderr"), "w+b") as errors:
                process = subprocess.Popen(
                    [*_ended_with_us(), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    start_new_session=True,
                    env={**os.environ, "TMPDIR": folder},
                )
                watch = Watch(process.pid, timeout, memory_limit)
                try:
                    with exit_poll(process) as poll:
                        outcome = watch.wait(poll)
                finally:
                    if process.returncode is None:
                        kill_group(process)
                errors.seek(0)
                text = errors.read().decode(errors="replace").replace(folder + os.sep, "")
            if outcome != "done":
                raise CompileFailed(limit_failure(outcome, timeout, memory_limit))
            if process.returncode != 0 or not out.exists():
                failure = read_failure(text, process.returncode)
                if failure.kind in ("crash", "compile"):
                    failure = self._explain(failure, path)
                raise CompileFailed(failure)
            seconds = time.perf_counter() - start
            found = warnings(text)
            return CompileOutput(
                out.read_bytes(), flags, seconds, watch.peak, "binary", found, read_report(table)
            )

    @staticmethod
    def _explain(failure: Failure, path: Path) -> Failure:
        """Add a note if the failed module is invalid: IREE may crash on such input."""
        try:
            with interrupts.at_once():
                done = subprocess.run(
                    [sys.executable, worker_file.__file__, "--validate", str(path)],
                    capture_output=True,
                    timeout=60,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            return failure
        if done.returncode != 1:
            return failure
        found = read_failure(done.stderr.decode(errors="replace"), 1)
        notes = (*found.notes, failure.message) if failure.kind == "crash" else found.notes
        return replace(found, kind="input", notes=notes)

    # ------------------------------------------------------------------ reproducers

    def with_reproducer(
        self, error: CompileFailed, source: bytes, flags: Sequence[str]
    ) -> CompileFailed:
        """Return the error with a note that names a folder holding the input and the command."""
        if self.reproducers is None or error.kind == "flags":
            return error
        name = hashlib.blake2b(source + "\0".join(flags).encode(), digest_size=8).hexdigest()
        folder = self.reproducers / name
        try:
            make_private(folder)
            suffix = "mlirbc" if source[:4] == b"ML\xefR" else "mlir"
            model = folder / f"input.{suffix}"
            _write(model, source)
            command = shlex.join(_command(source, flags, (), model, "out.vmfb"))
            _write(folder / "command.sh", (command + "\n").encode())
            _write(folder / "error.txt", (str(error) + "\n").encode())
            _keep_newest(self.reproducers, _MAX_REPRODUCERS)
        except OSError as e:
            log.warning("no reproducer was written: %s", e)
            return error
        failure = Failure(
            error.kind, error.message, error.location, error.notes, error.cause, error.place
        )
        found = CompileFailed(failure, extra_notes=[f"reproducer: sh {folder / 'command.sh'}"])
        found.reproducer = str(folder)
        return found


def _command(
    source: bytes, flags: Sequence[str], options: Sequence[str], path: Path, out: Path | str
) -> list[str]:
    """Return the command that compiles a file. options: those that a worker gives itself."""
    if worker_file.in_phases(source, flags):
        return [sys.executable, worker_file.__file__, "--compile", str(path), str(out), *flags]
    return [str(compiler_binary()), *flags, *options, str(path), "-o", str(out)]


def _ended_with_us() -> list[str]:
    """Return the command that ends a child with this process; Windows has no such call."""
    if os.name != "posix":
        return []
    return [sys.executable, worker_file.__file__, "--exec", str(os.getpid())]


def verifies() -> bool:
    """Return whether the user asks to verify the module after each of IREE's passes."""
    return os.environ.get(worker_file.VERIFY) == "1"


def _may_be_a_race(e: CompileFailed) -> bool:
    """Return whether a compile on one thread may succeed: after a crash, or a refused kernel.

    A refused stack or layout is refused each time; another flag set helps there.
    """
    return e.kind == "crash" or (e.kind == "compile" and e.cause == "kernel")


def _no_child(e: OSError) -> CompileError:
    """Return the error of a folder, file or process that the system refuses."""
    why = (e.strerror or str(e)).lower()
    where = f"{e.filename}: " if e.filename else ""
    notes = ["its files go to the temporary folder; TMPDIR names another one"]
    return CompileError(f"iree-compile cannot be started: {where}{why}", notes=notes)


def statistics_flags(path: Path) -> list[str]:
    """Return the flags that write IREE's table of dispatches to a file."""
    return [
        "--iree-scheduling-dump-statistics-format=csv",
        f"--iree-scheduling-dump-statistics-file={path}",
    ]


def read_report(path: Path) -> dict[str, str]:
    """Read the statistics IREE wrote, and remove them for the next compile."""
    try:
        text = path.read_text()
        path.unlink()
    except OSError:
        return {}
    return {"statistics": text}


def limit_failure(outcome: str, timeout: float | None, memory_limit: int | None) -> Failure:
    """Return the failure of a compile that has passed a limit: seconds, or resident bytes."""
    if outcome == "timeout":
        return Failure(
            "timeout",
            f"iree-compile was ended after {timeout:g} seconds",
            notes=("raise the time limit of the compile",),
        )
    assert memory_limit is not None
    return Failure(
        "memory",
        f"iree-compile was ended when it held more than {memory_limit / 2**30:.2f} GiB",
        notes=("raise the memory limit of the compile",),
    )


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def _keep_newest(folder: Path, count: int) -> None:
    entries = sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in entries[count:]:
        shutil.rmtree(old, ignore_errors=True)


_shared: IreeCompiler | None = None
_shared_lock = forks.lock()


def shared_compiler() -> IreeCompiler:
    """Return IREE of this process; its workers end with the process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            try:
                reproducers = cache_root() / "reproducers"
            except FileError:
                reproducers = None
            _shared = IreeCompiler(reproducers=reproducers)
            atexit.register(_shared.close)
        return _shared

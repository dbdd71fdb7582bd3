"""Compiles the kernels of a module apart from its host functions: side by side, and found again.

A compile of IREE walks all kernels in each of its passes over a module, and gives LLVM all of them
as one module, on one thread. Here a worker takes the kernels out; libraries of some kernels each
are compiled by other workers while it compiles the host functions, and are kept in the cache under
the text of each kernel. docs/design/37-kernels-apart.md has the measurements.

Whatever does not go through is compiled together, as one module, whose errors name the kernel.
"""

from __future__ import annotations

import logging
import platform
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import CompileError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.targets import worker as worker_file
from mgx_mlir.targets.cache import Cache, digest
from mgx_mlir.targets.child import (
    CompileOutput,
    IreeCompiler,
    compiler_version,
    limit_failure,
    read_report,
    shared_compiler,
    statistics_flags,
    verifies,
)
from mgx_mlir.targets.diagnostics import CompileFailed, warnings
from mgx_mlir.targets.process import Watch, readable
from mgx_mlir.targets.worker_kernels import Kernel, library_text
from mgx_mlir.targets.worker_process import Worker

log = logging.getLogger(__name__)

# Bytes of text of a library's kernels: each library costs what its part of the C library does,
# 50 ms, and four to ten kernels of a convolution net as much as ten times that. It does not depend
# on the machine, so that neither does the module.
_LIBRARY_BYTES = 160_000
_MAX_WORKERS = 16
# Bytes of a module that compiles faster as one: its workers take longer to start (0.3 s each).
SMALL = 40_000
_SMALL_PROGRAM = 30  # ops of a program whose module is small, nearly always
# format of IREE's loader for code of this machine
_FORMATS = {"x86_64": "embedded-elf-x86_64", "aarch64": "embedded-elf-arm_64"}


class _Together(Exception):
    """The module is to be compiled as one; the reason is the message."""


@dataclass(frozen=True)
class Library:
    """Compiled kernels: an ELF file for IREE's loader."""

    code: bytes
    kernels: tuple[str, ...]  # key of each, in the order of their numbers


@dataclass
class Limits:
    """Time and memory that are left to a compile."""

    timeout: float | None  # seconds, for all of it
    memory: int | None  # resident bytes of a worker
    start: float

    def left(self) -> float | None:
        """Return the seconds that are left."""
        if self.timeout is None:
            return None
        return max(self.timeout - (time.monotonic() - self.start), 0.001)


def compile_apart(
    compiler: IreeCompiler,
    source: bytes,
    flags: Sequence[str],
    *,
    cpu: str = "",
    cache: Cache | None = None,
    timeout: float | None = None,
    memory_limit: int | None = None,
) -> CompileOutput | None:
    """Compile a module with its kernels apart; None where it has to be compiled as one.

    flags: iree-compile's, for the CPU. cpu: identity of the machine that code for `host` is for.
    timeout: seconds. memory_limit: resident bytes of a worker.
    Errors: CompileFailed for a limit that is passed.
    """
    if not takes(compiler, source):
        return None
    start = time.perf_counter()
    limits = Limits(timeout, memory_limit, time.monotonic())
    pool = _Pool(compiler, limits)
    try:
        return _Compile(pool, source, tuple(flags), cpu, cache, start).run()
    except _Together as e:
        log.info("the module is compiled as one: %s", e)
        return None
    finally:
        pool.close()


def takes(compiler: IreeCompiler, source: bytes) -> bool:
    """Return whether a module is large enough to be taken apart, and the system has workers."""
    is_known = platform.machine() in _FORMATS
    return compiler.use_worker is not False and is_known and len(source) >= SMALL


def prepare(ops: int) -> None:
    """Start the workers that a program of so many ops will need, while passes run on it."""
    if ops >= _SMALL_PROGRAM and platform.machine() in _FORMATS:
        shared_compiler().prepare(1 + min(available_cpus(), _MAX_WORKERS))


class _Compile:
    """One module on its way."""

    def __init__(
        self,
        pool: _Pool,
        source: bytes,
        flags: tuple[str, ...],
        cpu: str,
        cache: Cache | None,
        start: float,
    ) -> None:
        self.pool, self.source, self.flags, self.cpu = pool, source, flags, cpu
        self.cache, self.start = cache, start
        self.resources = ""

    def run(self) -> CompileOutput | None:
        """Compile; None where IREE makes all kernels. Errors: _Together, CompileFailed."""
        host = self.pool.take()
        header, texts = self.pool.ask(host, {"kind": "split"}, self.source)
        if not header["kernels"]:
            return None
        self.resources = header["resources"]
        named, kernels = _kernels(header["kernels"], texts)
        found = self._found(kernels)
        missing = [k for key, k in sorted(kernels.items()) if key not in found]
        groups = _groups(missing)
        known = list(dict.fromkeys(library for library, _ in found.values()))
        table = Path(host.folder, "statistics.csv")
        request = {
            "kind": "host",
            "places": self._places(named, groups, known, found),
            "formats": [_FORMATS[platform.machine()]] * (len(known) + len(groups)),
            "flags": [*self.flags, *statistics_flags(table)],
        }
        self.pool.begin(host, request)
        made = self._libraries(groups)
        self.pool.end(host)
        libraries = [*known, *made]
        ask = {"kind": "finish", "sizes": [len(lib.code) for lib in libraries]}
        _, vmfb = self.pool.ask(host, ask, b"".join(lib.code for lib in libraries))
        self._keep(made)
        return CompileOutput(
            vmfb,
            self.flags,
            time.perf_counter() - self.start,
            self.pool.peak,
            "workers",
            warnings(self.pool.errors),
            read_report(table),
        )

    # ------------------------------------------------------------------ libraries

    def _libraries(self, groups: Sequence[Sequence[Kernel]]) -> list[Library]:
        """Compile libraries side by side."""
        requests = [
            ({"kind": "library", "flags": list(self.flags)}, self._text(group)) for group in groups
        ]
        replies = self.pool.ask_all(requests)
        made = []
        for group, (header, code) in zip(groups, replies, strict=True):
            if header["format"] != _FORMATS[platform.machine()]:
                raise _Together(f"a library has the format {header['format']}")
            made.append(Library(code, tuple(k.key for k in group)))
        return made

    def _text(self, group: Sequence[Kernel]) -> bytes:
        return library_text(group, self.resources).encode()

    @staticmethod
    def _places(
        named: Mapping[str, str],
        groups: Sequence[Sequence[Kernel]],
        known: Sequence[Library],
        found: Mapping[str, tuple[Library, int]],
    ) -> dict[str, tuple[int, int]]:
        """Return the library and the number in it of each kernel, by its name in the module."""
        at = {key: (known.index(lib), number) for key, (lib, number) in found.items()}
        for i, group in enumerate(groups):
            at.update({k.key: (len(known) + i, n) for n, k in enumerate(group)})
        return {name: at[key] for name, key in named.items()}

    # ------------------------------------------------------------------ the cache

    def _key(self, kernel: str) -> str:
        return digest(kernel, self.resources, compiler_version(), self.cpu, *self.flags)

    def _found(self, kernels: Mapping[str, Kernel]) -> dict[str, tuple[Library, int]]:
        """Return the library, and the number in it, of each kernel that the cache has."""
        if self.cache is None:
            return {}
        libraries: dict[str, Library | None] = {}
        out: dict[str, tuple[Library, int]] = {}
        for key in sorted(kernels):
            entry = self.cache.get("kernel", self._key(key))
            if entry is None:
                continue
            name = str(entry.meta["library"])
            if name not in libraries:
                libraries[name] = _read(self.cache, name)
            library = libraries[name]
            if library is not None and key in library.kernels:
                out[key] = library, library.kernels.index(key)
        return out

    def _keep(self, libraries: Sequence[Library]) -> None:
        if self.cache is None:
            return
        for library in libraries:
            name = digest(*map(self._key, library.kernels))
            self.cache.put(
                "library", name, {"code": library.code}, {"kernels": list(library.kernels)}
            )
            for key in library.kernels:
                self.cache.put("kernel", self._key(key), {}, {"library": name})


def _read(cache: Cache, name: str) -> Library | None:
    entry = cache.get("library", name)
    if entry is None:
        return None
    kernels = tuple(map(str, entry.meta["kernels"]))
    return Library(bytes(entry.blob("code")), kernels)


def _kernels(
    rows: Sequence[Sequence[Any]], texts: bytes
) -> tuple[dict[str, str], dict[str, Kernel]]:
    """Return the key of each name, and the kernel of each key."""
    named: dict[str, str] = {}
    kernels: dict[str, Kernel] = {}
    at = 0
    for name, key, layout, size in rows:
        named[name] = key
        kernels.setdefault(key, Kernel(key, texts[at : at + size].decode(), layout))
        at += size
    return named, kernels


def _groups(kernels: Sequence[Kernel]) -> list[list[Kernel]]:
    """Spread kernels over libraries of about equal text, by what they are alone."""
    total = sum(len(k.text) for k in kernels)
    count = min(max(round(total / _LIBRARY_BYTES), 1), len(kernels))
    groups: list[list[Kernel]] = [[] for _ in range(count)]
    sizes = [0] * count
    for k in sorted(kernels, key=lambda k: (-len(k.text), k.key)):
        least = sizes.index(min(sizes))
        groups[least].append(k)
        sizes[least] += len(k.text)
    return [g for g in groups if g]


# ------------------------------------------------------------------------------- the workers


class _Pool:
    """The workers of one compile."""

    def __init__(self, compiler: IreeCompiler, limits: Limits) -> None:
        self.compiler, self.limits = compiler, limits
        self.peak, self.errors = 0, ""
        self._taken: dict[Worker, bool] = {}  # worker -> it waits for a request
        self._watches: dict[Worker, Watch] = {}

    def take(self) -> Worker:
        """Return a worker that waits for a request. Errors: _Together where none starts."""
        try:
            found = self.compiler.lease()
        except OSError as e:
            raise _Together(f"no worker starts: {e}") from None
        self._taken[found] = True
        return found

    def begin(self, worker: Worker, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a request. Errors: _Together."""
        stdin = worker.process.stdin
        assert stdin is not None
        try:
            worker.wait()
        except CompileError as e:
            raise _Together(e.message) from None
        self._taken[worker] = False
        self._watches[worker] = Watch(worker.process.pid, self.limits.left(), self.limits.memory)
        worker.uses += 1
        try:
            request = {**header, "verify": verifies()}
            worker_file.send(cast(BinaryIO, stdin), request, payload)
        except OSError as e:
            raise _Together(f"a worker has ended: {e}") from None

    def end(self, worker: Worker) -> tuple[dict[str, Any], bytes]:
        """Wait for the reply to a request. Errors: _Together, CompileFailed."""
        watch, out = self._watches.pop(worker), worker.process.stdout
        assert out is not None
        outcome = watch.wait(lambda s: readable(out, s))
        if outcome != "done":
            raise CompileFailed(limit_failure(outcome, self.limits.timeout, self.limits.memory))
        frame = worker_file.receive(cast(BinaryIO, out))
        errors = worker.take_errors()
        self.errors += errors
        if frame is None:
            raise _Together(f"a worker has ended: {errors[-300:].strip()}")
        self._taken[worker] = True
        header, payload = frame
        self.peak = max(self.peak, header["peak"] or watch.peak)
        worker.rss = header["rss"]
        if header["status"] != "ok":
            why = payload.decode(errors="replace") or errors
            raise _Together(f"{header['status']}: {why[:300].strip()}")
        return header, payload

    def ask(
        self, worker: Worker, header: Mapping[str, Any], payload: bytes = b""
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request and wait for its reply."""
        self.begin(worker, header, payload)
        return self.end(worker)

    def ask_all(
        self, requests: Sequence[tuple[Mapping[str, Any], bytes]]
    ) -> list[tuple[dict[str, Any], bytes]]:
        """Send requests to as many workers as there are CPUs; their replies, in order."""
        if not requests:
            return []
        count = min(len(requests), max(1, min(available_cpus(), _MAX_WORKERS)))
        workers = [self.take() for _ in range(count)]
        todo = list(enumerate(requests))
        replies: dict[int, tuple[dict[str, Any], bytes]] = {}
        at: dict[Worker, int] = {}
        while todo or at:
            for worker in workers:
                if worker not in at and todo:
                    number, (header, payload) = todo.pop(0)
                    self.begin(worker, header, payload)
                    at[worker] = number
            for worker in self._ready(list(at)):
                replies[at.pop(worker)] = self.end(worker)
        for worker in workers:
            self._give(worker)
        return [replies[i] for i in range(len(requests))]

    def _ready(self, workers: Sequence[Worker]) -> list[Worker]:
        """Wait until some of the workers have replied, or have used up a limit."""
        poll = select.poll()
        by_number = {}
        for worker in workers:
            out = worker.process.stdout
            assert out is not None
            by_number[out.fileno()] = worker
            poll.register(out, select.POLLIN | select.POLLHUP)
        while True:
            found = [by_number[number] for number, _ in poll.poll(50)]
            if found:
                return found
            interrupts.check()
            passed = [w for w in workers if self._watches[w].passed() is not None]
            if passed:
                return passed  # `end` says which limit

    def _give(self, worker: Worker) -> None:
        if self._taken.pop(worker):
            self.compiler.give(worker, alive=True)

    def close(self) -> None:
        """Give the workers back; one that still works is ended."""
        for worker, waits in self._taken.items():
            self.compiler.give(worker, alive=waits)
        self._taken.clear()


__all__ = ["SMALL", "Library", "Limits", "compile_apart", "prepare", "takes"]

"""Compile the kernels of a module separately from its host functions: in parallel, and cached.

A compile of IREE walks all kernels in each of its passes over a module, and gives LLVM all of them
as one module, on one thread. Here a worker takes the kernels out; libraries of some kernels each
are compiled by other workers while it compiles the host functions, and are kept in the cache under
the text of each kernel. Most of them start earlier: `stream` takes kernels while their program is
lowered.

docs/design/37-kernels-apart.md has the measurements. On any failure the module is compiled as one,
and its errors name the kernel.
"""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from mgx_mlir.core import progress
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import (
    CompileOutput,
    IreeCompiler,
    read_report,
    shared_compiler,
    statistics_flags,
)
from mgx_mlir.targets.diagnostics import warnings
from mgx_mlir.targets.kernel_libraries import CPU_FORMS, Form, Libraries, groups_of, kernels_of
from mgx_mlir.targets.kernel_stream import Stream
from mgx_mlir.targets.worker_kernels import exported
from mgx_mlir.targets.worker_pool import Limits, Pool, Together, most

log = logging.getLogger(__name__)

# Bytes of a module that compiles faster as one: its host functions alone take 0.2 s.
SMALL = 40_000
SMALL_OF_GPUS = 10_000  # a kernel of a GPU takes 0.1 s
_SMALL_PROGRAM = 30  # ops of a program whose module is small, nearly always


def stream(
    compiler: IreeCompiler,
    flags: Sequence[str],
    *,
    ops: int,
    cpu: str = "",
    cache: Cache | None = None,
    timeout: float | None = None,
    memory_limit: int | None = None,
) -> Stream | None:
    """Return the stream that compiles kernels during lowering of a program of `ops` ops; None for
    small ones.

    The other arguments are those of `compile_apart`.
    """
    if not _has_workers(compiler) or ops < _SMALL_PROGRAM:
        return None
    pool = Pool(compiler, Limits(timeout, memory_limit, time.monotonic()), count=_at_first(cache))
    return Stream(pool, Libraries(flags, cpu, cache), SMALL)


def compile_apart(
    compiler: IreeCompiler,
    source: bytes,
    flags: Sequence[str],
    *,
    cpu: str = "",
    cache: Cache | None = None,
    timeout: float | None = None,
    memory_limit: int | None = None,
    begun: Stream | None = None,
    form: Form | None = None,
    left_out: bool = False,
) -> CompileOutput | None:
    """Compile a module with its kernels separate; None where it has to be compiled as one.

    flags: iree-compile's, for the CPU. cpu: identity of this machine, for code for `host`. timeout:
    seconds. memory_limit: resident bytes of a worker. begun: the stream of this module's kernels,
    for the same flags. form: that of the code, None: this machine's. left_out: `begun`
    alone has the kernels.
    Errors: CompileFailed for a limit that is passed.
    """
    if not left_out and not takes(compiler, source, form):
        return None
    start = time.perf_counter()
    limits = Limits(timeout, memory_limit, time.monotonic())
    if begun is None or begun.libraries.flags != tuple(flags):
        libraries = Libraries(flags, cpu, cache, form)
        begun = Stream(Pool(compiler, limits, libraries.form.process), libraries)
    begun.pool.limits = limits
    try:
        return _Compile(begun, source, start).run()
    except Together as e:
        log.info("the module is compiled as one: %s", e)
        return None
    finally:
        begun.close()


def compile_small(
    compiler: IreeCompiler,
    source: bytes,
    flags: Sequence[str],
    *,
    timeout: float | None = None,
    memory_limit: int | None = None,
) -> CompileOutput | None:
    """Compile a module that is too small for separate kernels, in one worker.

    None where that fails: another compile says why. Errors: CompileFailed for a limit that is
    passed.
    """
    if not _has_workers(compiler):
        return None
    start = time.perf_counter()
    pool = Pool(compiler, Limits(timeout, memory_limit, time.monotonic()))
    try:
        worker = pool.take()
        table = Path(worker.folder, "statistics.csv")
        request = {"kind": "whole", "flags": [*flags, *statistics_flags(table)]}
        _, vmfb = pool.ask(worker, request, source)
        return CompileOutput(
            vmfb, tuple(flags), time.perf_counter() - start, pool.peak, "worker",
            warnings(pool.errors), read_report(table),
        )  # fmt: skip
    except Together as e:
        log.info("the module is compiled by another process: %s", e)
        return None
    finally:
        pool.close()


def takes(compiler: IreeCompiler, source: bytes, form: Form | None = None) -> bool:
    """Return whether a module is large enough to be split, and the system has workers."""
    return _has_workers(compiler) and len(source) >= (SMALL if form is None else SMALL_OF_GPUS)


def _has_workers(compiler: IreeCompiler) -> bool:
    return compiler.use_worker is not False and platform.machine() in CPU_FORMS


def begin() -> None:
    """Start one worker, which a program of any size needs."""
    if platform.machine() in CPU_FORMS:
        shared_compiler().prepare(1)


def prepare(ops: int, form: Form | None = None, cache: Cache | None = None) -> None:
    """Start the workers that a program of `ops` ops will need, while its passes run."""
    if ops >= _SMALL_PROGRAM and platform.machine() in CPU_FORMS:
        flags = () if form is None else form.process
        shared_compiler().prepare(_at_first(cache), *flags)


def _at_first(cache: Cache | None) -> int:
    """Return the workers to begin with: one where the cache may have the kernels."""
    return 1 if cache is not None and cache.may_have("library") else most()


class _Compile:
    """The compile of one module."""

    def __init__(self, begun: Stream, source: bytes, start: float) -> None:
        self.begun, self.source, self.start = begun, source, start
        self.pool, self.libraries = begun.pool, begun.libraries

    def run(self) -> CompileOutput | None:
        """Compile; None where IREE makes all kernels. Errors: Together, CompileFailed."""
        begun, found = self.begun, self.begun.found
        begun.end()
        host = self.pool.take()
        start = {"start": self.libraries.form.start, "flags": list(self.libraries.flags)}
        header, texts = self.pool.ask(host, {"kind": "split", **start}, self.source)
        begun.planned()
        self.libraries.resources = header["resources"]
        named, kernels = kernels_of(header["kernels"], texts)
        for name, given in header["left_out"].items():
            if given not in begun.named:
                raise Together("a kernel that the module leaves out has no key")
            named[name] = begun.named[given]
        if not named:
            return None
        used = set(named.values())
        planned = {k.key for group in begun.groups for k in group}
        rest = {key: k for key, k in kernels.items() if key not in planned and key not in found}
        found.update(self.libraries.found(rest))
        progress.kernels(len(used), sum(key in found for key in used))
        rest.update((key, k) for key, k in begun.rest.items() if key in used)
        missing = [k for key, k in sorted(rest.items()) if key not in found]
        groups = groups_of(missing, self.libraries.form.bytes)
        if len(groups) > 1:
            self.pool.widen()
        for group in groups:
            begun.compile(group)
        known = list(dict.fromkeys(found[key][0] for key in sorted(used) if key in found))
        # numbers of libraries: compiled ones in order, then cached ones
        at = {k.key: (i, n) for i, group in enumerate(begun.groups) for n, k in enumerate(group)}
        count = len(begun.groups)
        for key in used:
            if key in found:
                library, number = found[key]
                at[key] = count + known.index(library), number
        table = Path(host.folder, "statistics.csv")
        request = {
            "kind": "host",
            "places": {name: at[key] for name, key in named.items()},
            "keys": named,
            "formats": [self.libraries.form.format] * (count + len(known)),
            **start,
            "flags": [*self.libraries.flags, *statistics_flags(table)],
        }
        self.pool.tell(host, request)
        self.pool.drain(host)
        made = [begun.made[i] for i in range(count)]
        every = [lib.code for lib in (*made, *known)]
        libraries = (*made, *known)
        counts = {k: n for lib in libraries for k, n in zip(lib.kernels, lib.counts, strict=False)}
        ask = {"kind": "finish", "sizes": list(map(len, every)), "counts": counts}
        _, vmfb = self.pool.ask(host, ask, b"".join(every))
        self.libraries.keep(made)
        self.libraries.keep_names(begun.new_names(), libraries)
        return CompileOutput(
            vmfb,
            self.libraries.flags,
            time.perf_counter() - self.start,
            self.pool.peak,
            "workers",
            warnings(self.pool.errors),
            read_report(table),
            symbols={name: exported(key) for name, key in named.items()},
        )


__all__ = ["SMALL", "begin", "compile_apart", "compile_small", "prepare", "stream", "takes"]

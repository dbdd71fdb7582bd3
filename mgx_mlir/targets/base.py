"""Targets: what compiles a lowered program, and the registry that finds one by name."""

from __future__ import annotations

import csv
import difflib
import functools
import itertools
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from mgx_mlir.core.errors import TargetError
from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.architectures import ARCHITECTURES, best_of, check_arch, driver_of
from mgx_mlir.hardware.iree_targets import stated_target
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.lowered import KernelInfo, Lowered
from mgx_mlir.targets import flags as flag_sets
from mgx_mlir.targets.cache import Cache, default_cache, digest
from mgx_mlir.targets.devices import gpu_devices
from mgx_mlir.targets.diagnostics import CompileFailed, Failure
from mgx_mlir.targets.executable import Executable, TargetKind, executable_of, record_of
from mgx_mlir.targets.flags import FlagSet
from mgx_mlir.targets.locks import Busy, holder_text
from mgx_mlir.targets.process import DEFAULT_MEMORY_LIMIT

if TYPE_CHECKING:  # start-up: targets and their flags need no compiler
    from mgx_mlir.targets.child import CompileOutput, IreeCompiler
    from mgx_mlir.targets.kernel_libraries import Form
    from mgx_mlir.targets.kernel_stream import Stream

log = logging.getLogger(__name__)

# The default limit of a compile. Kernels take 0.1 to 3 s each; the rest is for busy machines. For
# some forms of kernels iree-compile never ends (docs/iree-hazards.md).
BASE_SECONDS, KERNEL_SECONDS = 600.0, 6.0


@dataclass(frozen=True)
class BackendOptions:
    """Limits and caching of one compile."""

    timeout: float | None = None  # time limit in seconds; None: `time_limit`
    memory_limit: int | None = DEFAULT_MEMORY_LIMIT  # limit of IREE's resident bytes
    cache: bool = True  # compile cache is used
    best: bool = False  # best flag set alone is tried
    # failure of the best flag set; if given, only the others are tried
    after: CompileFailed | None = None
    begun: Stream | None = None  # the stream that compiles the program's kernels already


class KernelsLeftOut(Exception):
    """A module whose kernels were to compile apart has to be compiled as one, with its kernels."""


@dataclass(frozen=True)
class Apart:
    """Form of kernels that compile apart. cpu: identity of the CPU that code for `host` is for."""

    cpu: str
    form: Form | None = None  # None: of this machine's CPU


class Target(ABC):
    """A target that programs are compiled for. Subclasses are dataclasses whose fields are its
    options.
    """

    kind: ClassVar[TargetKind]

    @property
    def name(self) -> str:
        """The name users give, `cpu` or `gpu`."""
        return self.kind

    @property
    @abstractmethod
    def arch(self) -> str:
        """Architecture of the code: a gfx or sm_ name, or the CPU."""

    @abstractmethod
    def ladder(self) -> tuple[FlagSet, ...]:
        """Return the flag sets to compile with, best first."""

    def apart(self) -> Apart | None:
        """Return how kernels compile apart from their host functions; None where they do not."""
        return None

    def begin(self) -> None:
        """Start the worker that each compile needs, before our own modules are imported."""
        how = self.apart()
        if how is not None and how.form is None:
            from mgx_mlir.targets import apart

            apart.begin()

    def prepare(self, ops: int, options: BackendOptions | None = None) -> None:
        """Start the workers for a program of `ops` ops, while its passes run."""
        options, how = options or BackendOptions(), self.apart()
        if how is not None:
            from mgx_mlir.targets import apart

            apart.prepare(ops, how.form, default_cache() if options.cache else None)

    def stream(self, ops: int, options: BackendOptions | None = None) -> Stream | None:
        """Return the stream that compiles kernels during lowering of a program of `ops` ops.

        None where kernels do not compile apart. Give it to `compile_lowered`, and close it.
        """
        options, how = options or BackendOptions(), self.apart()
        if how is None or how.form is not None:
            return None
        from mgx_mlir.targets import apart
        from mgx_mlir.targets.child import shared_compiler

        return apart.stream(
            shared_compiler(), self.ladder()[0].flags, ops=ops, cpu=how.cpu,
            cache=default_cache() if options.cache else None, timeout=options.timeout,
            memory_limit=options.memory_limit,
        )  # fmt: skip

    def lowered_key(self, lowered: Lowered) -> str:
        """Return the cache key of a lowered program on this target."""
        from mgx_mlir.targets import branch_moves
        from mgx_mlir.targets.child import code_version

        ladder = self.ladder()
        parts = ["\0".join((s.name, *s.flags)) for s in ladder]
        if any(f.endswith("-cpu=host") for s in ladder for f in s.flags):
            parts.append(flag_sets.host_cpu())
        return digest(lowered.bytecode, code_version(), branch_moves.VERSION, *parts)

    def compile_lowered(
        self,
        lowered: Lowered,
        options: BackendOptions | None = None,
        *,
        compiler: IreeCompiler | None = None,
        cache: Cache | None = None,
    ) -> Executable:
        """Compile, or take from the cache.

        Another flag set is used only when the best one failed in a way that it cures; that is
        logged and recorded.
        Errors: CompileFailed with the best set's diagnostics; TargetError.
        """
        from mgx_mlir.targets.child import shared_compiler

        options = options or BackendOptions()
        compiler = compiler or shared_compiler()
        key = self.lowered_key(lowered)
        store = (cache or default_cache()) if options.cache else None
        if store is None:
            return self._compile(lowered, options, compiler, key, None)
        hit = self._from_cache(store, key)
        if hit is not None:
            return hit
        try:
            with store.lock("module", key, options.timeout) as waited:
                hit = self._from_cache(store, key)  # another process may have compiled it meanwhile
                if hit is not None:
                    return hit
                if options.timeout is not None:
                    options = replace(options, timeout=max(options.timeout - waited, 0.001))
                made = self._compile(lowered, options, compiler, key, store)
                store.put_module(key, bytes(made.vmfb), record_of(made))
                return made
        except Busy as e:
            raise CompileFailed(_busy(e, options.timeout)) from None

    def _from_cache(self, store: Cache, key: str) -> Executable | None:
        found = store.get_module(key)
        if found is None:
            return None
        try:
            return executable_of(key, found)
        except (KeyError, TypeError, ValueError):
            store.remove("module", key)
            return None

    def _run(
        self,
        lowered: Lowered,
        flags: tuple[str, ...],
        compiler: IreeCompiler,
        store: Cache | None,
        limit: float,
        options: BackendOptions,
    ) -> CompileOutput:
        """Compile with one set of flags. Errors: CompileFailed."""
        from mgx_mlir.targets.apart import compile_apart, compile_small, takes

        start = time.monotonic()
        how = self.apart()
        left_out = lowered.left_out
        if (
            how is not None
            and how.form is not None
            and not all(p.is_static for p in lowered.inputs)
        ):
            how = None  # the kernels' numbers of workgroups depend on dynamic sizes
        if how is not None and (left_out or takes(compiler, lowered.bytecode, how.form)):
            made = compile_apart(
                compiler, lowered.bytecode, flags, cpu=how.cpu, cache=store, timeout=limit,
                memory_limit=options.memory_limit, begun=options.begun, form=how.form,
                left_out=left_out,
            )  # fmt: skip
            if made is not None:
                return made
            if left_out:
                raise KernelsLeftOut
            limit = max(limit - (time.monotonic() - start), 0.001)
        elif how is not None and how.form is None:
            made = compile_small(
                compiler, lowered.bytecode, flags, timeout=limit, memory_limit=options.memory_limit
            )
            if made is not None:
                return made
            limit = max(limit - (time.monotonic() - start), 0.001)
        return compiler.run(
            lowered.bytecode,
            flags,
            timeout=limit,
            memory_limit=options.memory_limit,
            reproducer=False,
            statistics=True,
        )

    def _compile(
        self,
        lowered: Lowered,
        options: BackendOptions,
        compiler: IreeCompiler,
        key: str,
        store: Cache | None,
    ) -> Executable:
        ladder = self.ladder()
        failures = [] if options.after is None else [options.after]
        tried = list(ladder[: len(failures)])
        limit = time_limit(lowered) if options.timeout is None else options.timeout
        for rung in ladder[:1] if options.best else ladder[len(tried) :]:
            if failures and failures[-1].cause not in rung.cures:
                continue
            tried.append(rung)
            try:
                out = _mended(self._run(lowered, rung.flags, compiler, store, limit, options))
            except CompileFailed as e:
                failures.append(_endless(e) if options.timeout is None else e)
                continue
            if failures:
                log.warning(
                    "%s: compiled with the flag set '%s' (%s), because '%s' failed: %s",
                    self.name, rung.name, rung.why, ladder[0].name, failures[0].message,
                )  # fmt: skip
            made = self._executable(out, key, rung, tried, failures)
            return replace(made, input_alignment=lowered.input_alignment)
        raise self._failure(failures, tried, lowered, compiler)

    def _executable(
        self,
        out: CompileOutput,
        key: str,
        rung: FlagSet,
        tried: Sequence[FlagSet],
        failures: Sequence[CompileFailed],
    ) -> Executable:
        lost = tuple(f"{s.name}: {e.message}" for s, e in zip(tried, failures, strict=False))
        return Executable(
            out.vmfb, self.kind, self.arch, key, out.flags, rung.name, lost, out.seconds,
            out.peak_memory, out.via, False, out.warnings,
            parse_dispatches(out.reports.get("statistics", "")),
            parse_plan(out.reports.get("statistics", "")), out.crashes,
            symbols=dict(out.symbols),
        )  # fmt: skip

    def _failure(
        self,
        failures: Sequence[CompileFailed],
        tried: Sequence[FlagSet],
        lowered: Lowered,
        compiler: IreeCompiler,
    ) -> CompileFailed:
        first = failures[0]
        notes = list(first.notes)
        if len(failures) > 1:
            others = ", ".join(s.name for s in tried[1:])
            notes.append(f"it fails also with the flag sets {others}")
        location = source_of(first.location, lowered.kernels)
        error = CompileFailed(
            Failure(first.kind, first.message, location, tuple(notes), first.cause, first.location)
        )
        return compiler.with_reproducer(error, lowered.bytecode, tried[0].flags)


def _mended(out: CompileOutput) -> CompileOutput:
    """Return the module with the register moves of its branches in a correct order."""
    from mgx_mlir.targets import branch_moves

    try:
        return replace(out, vmfb=branch_moves.mend(out.vmfb))
    except ValueError as e:
        raise CompileFailed(Failure("compile", str(e), cause="moves")) from None


def _busy(e: Busy, timeout: float | None) -> Failure:
    who = holder_text(e.holder)
    return Failure(
        "timeout",
        f"the time limit of {timeout:g} seconds is over, and {who} is still compiling the same "
        f"program",
        notes=("raise the time limit, or compile without the cache",),
    )


def time_limit(lowered: Lowered) -> float:
    """Return the default time limit of a compile in seconds."""
    return BASE_SECONDS + KERNEL_SECONDS * len(lowered.kernels)


def _endless(e: CompileFailed) -> CompileFailed:
    """Mark a failure at the default time limit as one that other flags may cure."""
    if e.kind != "timeout":
        return e
    notes = ("timeout= of compile, --timeout of mgx-driver: another limit",)
    return CompileFailed(Failure(e.kind, e.message, e.location, notes, "time"))


def source_of(location: str | None, kernels: Sequence[KernelInfo]) -> str | None:
    """Return IREE's `file:line:col` with the source node's name, if a kernel has it."""
    if location is None:
        return None
    for k in kernels:
        if k.location and location in k.location.replace('"', ""):
            return f"{k.name} ({location})"
    return location


def parse_dispatches(statistics: str) -> dict[str, list[str]]:
    """Parse the kernels each function launches from IREE's scheduling statistics (CSV)."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in statistics.splitlines():
        if line.startswith("; "):
            current = None
            if "util.initializer" in line:
                current = found.setdefault("initializer", [])
            elif "util.func @" in line:
                name = line.split("util.func @", 1)[1].split()[0]
                current = found.setdefault(name, [])
        elif current is not None and ',"dispatch",' in line:
            symbol = next(csv.reader([line]))[2]
            current.append(symbol.rpartition("@")[2])
    return found


def parse_plan(statistics: str) -> dict[str, int]:
    """Parse the bytes IREE planned, from the table of the whole program (CSV)."""
    rows = [row for row in csv.reader(statistics.splitlines()) if row]
    for head, row in itertools.pairwise(rows):
        if head[0] == "Constants" and len(head) == len(row):
            found = dict(zip(head, row, strict=True))
            names = {"constants": "Constant Size", "transient": "Transient Size"}
            return {k: int(found[v]) for k, v in names.items() if found.get(v, "").isdecimal()}
    return {}


# ---------------------------------------------------------------------------------- registry

_FACTORIES: dict[str, Callable[..., Target]] = {}


def register_target(name: str, factory: Callable[..., Target]) -> None:
    """Make `get_target(name, **options)` call a factory."""
    _FACTORIES[name] = factory


def target_names() -> list[str]:
    """Return the registered names."""
    return sorted(_FACTORIES)


def get_target(name: str, **options: Any) -> Target:
    """Make a target by name with its options. TargetError for an unknown name or option."""
    factory = _FACTORIES.get(name)
    if factory is None:
        near = difflib.get_close_matches(name, _FACTORIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(target_names())}"
        raise TargetError(f"unknown target '{name}'", notes=[hint])
    try:
        known = [f.name for f in fields(factory)]  # type: ignore[arg-type]
    except TypeError:
        return factory(**options)
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'none'}"
            raise TargetError(f"target {name} has no option '{option}'", notes=[hint])
    return factory(**options)


@dataclass
class CpuTarget(Target):
    """The host's CPU, through llvm-cpu. Errors: TargetError."""

    kind: ClassVar[TargetKind] = "cpu"
    cpu: str = "host"  # CPU to compile for: `host`, `generic` or an LLVM name
    threads: int | None = None  # threads of a run; None: all CPUs that the process may use
    opt_level: str = "O2"  # optimization level of IREE
    data_tiling: bool = True  # matmul operands packed in tiles
    stack_limit: int = flag_sets.STACK_LIMIT  # stack bytes of a dispatch
    extra_flags: tuple[str, ...] = ()  # flags to append for iree-compile

    def __post_init__(self) -> None:
        self.opt_level = flag_sets.check_opt_level(self.opt_level)
        self.extra_flags = tuple(self.extra_flags)
        if self.threads is not None and self.threads < 1:
            raise TargetError(f"expected at least 1 thread, got {self.threads}")

    @property
    def arch(self) -> str:
        """The CPU's name."""
        return self.cpu

    @property
    def thread_count(self) -> int:
        """The threads a run uses."""
        return self.threads or available_cpus()

    def ladder(self) -> tuple[FlagSet, ...]:
        return flag_sets.cpu_ladder(
            cpu=self.cpu,
            opt_level=self.opt_level,
            data_tiling=self.data_tiling,
            stack_limit=self.stack_limit,
            extra=self.extra_flags,
        )

    def apart(self) -> Apart | None:
        # flags may request files of the kernels, or another linker
        if self.extra_flags:
            return None
        return Apart(flag_sets.host_cpu() if self.cpu == "host" else "")


@dataclass
class GpuTarget(Target):
    """A GPU, AMD's through ROCm and NVIDIA's through CUDA; no device is needed to compile.

    Errors: TargetError.
    """

    kind: ClassVar[TargetKind] = "gpu"
    # gfx, sm_ or card name; None: the first device's, else gfx942 with a warning
    architecture: str | None = None
    opt_level: str = "O2"  # optimization level of IREE
    extra_flags: tuple[str, ...] = ()  # flags to append for iree-compile

    def __post_init__(self) -> None:
        self.opt_level = flag_sets.check_opt_level(self.opt_level)
        self.extra_flags = tuple(self.extra_flags)
        if self.architecture is None:
            present = [d.arch for d in gpu_devices() if d.arch]
            self.architecture = _compiled_for(present[0]) if present else _assumed_arch()
        self.architecture = check_arch(self.architecture)
        compiled_as = ARCHITECTURES[self.architecture].compiled_as
        if compiled_as != self.architecture:
            _say_nearest(self.architecture, compiled_as)

    @property
    def arch(self) -> str:
        """The gfx or sm_ name."""
        assert self.architecture is not None
        return self.architecture

    def ladder(self) -> tuple[FlagSet, ...]:
        return flag_sets.gpu_ladder(self.arch, opt_level=self.opt_level, extra=self.extra_flags)

    def apart(self) -> Apart | None:
        from mgx_mlir.targets.kernel_libraries import ROCM

        # libraries would need the target that such a module states
        if self.extra_flags or driver_of(self.arch) != "hip" or stated_target(self.arch):
            return None
        return Apart("", ROCM)


def _compiled_for(device: str) -> str:
    """Return the architecture to compile for on a device: its own, else the newest compatible
    one.
    """
    return device if device in ARCHITECTURES else best_of(tuple(ARCHITECTURES), device) or device


@functools.cache
def _assumed_arch() -> str:
    """Return the default architecture, where no device or name is given; warn once in a process."""
    log.warning(
        "no GPU is found and no architecture is named: compiling for %s", flag_sets.DEFAULT_ARCH
    )
    return flag_sets.DEFAULT_ARCH


@functools.cache
def _say_nearest(arch: str, compiled_as: str) -> None:
    """Log that IREE has no such target, once in a process."""
    log.warning(
        "IREE has no target %s: compiling for %s, whose PTX the driver compiles for %s",
        arch, compiled_as, arch,
    )  # fmt: skip


register_target("cpu", CpuTarget)
register_target("gpu", GpuTarget)

"""One compile of a program for cpu or gpu, in named stages: read, optimize, lower, generate."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mgx_mlir.compiler.backend import backend_of, processor_of
from mgx_mlir.compiler.caches_in_place import caches_of, in_place, may_replace
from mgx_mlir.compiler.dump_files import show_compiled
from mgx_mlir.compiler.dumps import show_lowered
from mgx_mlir.compiler.environment import watched
from mgx_mlir.compiler.equal_dims import FUNCTION, equal_dims
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.models import program_of
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.plainer import CrashSearch, PlainerKernels
from mgx_mlir.compiler.program_cache import Keeping
from mgx_mlir.compiler.sources import ModelSource
from mgx_mlir.compiler.stages import names_dynamic_dims, run_passes, run_unnamed
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.compiler.variants import adopt, share_weights, specialised, variants_of, with_variants
from mgx_mlir.core import freed_memory, operand_segments, progress
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import ReadFile, noting_reads
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.hardware.machine import peak_memory
from mgx_mlir.passes.analysis.input_values import state_values
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.programs.lowered import IN_PLACE, Lowered, in_place_name, is_in_place
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.programs.signature import Pair, Signature, Variant
from mgx_mlir.targets.base import BackendOptions, KernelsLeftOut, Target
from mgx_mlir.targets.diagnostics import CompileFailed
from mgx_mlir.targets.executable import Executable
from mgx_mlir.targets.kernel_stream import Stream

log = logging.getLogger(__name__)

_LARGE = 8 << 20  # bytes of weights whose copies are released to the system
_NO_BOUNDARIES = (
    "with kernel boundaries off the backend chose the kernels, and cannot compile them: "
    "leave kernel_boundaries on"
)


class Compilation:
    """One compile. `run` goes through the stages; each records its time in `stats`."""

    def __init__(self, options: CompileOptions, backend: Target | None = None) -> None:
        self.options, self.stats = options, CompileStats()
        self.backend = backend or backend_of(options)
        self.chosen: tuple[Variant, ...] = ()
        self.variants: dict[str, ProgramIR] = {}
        self.caches: tuple[Pair, ...] = ()
        self.before_passes: ProgramIR | None = None  # program whose dynamic dims get names
        self.model: str | os.PathLike[str] | bytes | None = None  # read again for its weights
        self._reads: Mapping[str, ReadFile] = {}  # files of the model

    def run(self, model: ModelSource, key: str | None = None) -> IreeProgram:
        """Compile the model, and keep it in the cache under `key`. Raises MgxError."""
        with progress.watched(self._note):
            return self._run(model, key)

    def _note(self, now: progress.Progress) -> None:
        if now.total:
            self.stats.kernels, self.stats.kernels_found = now.total, now.found

    def _run(self, model: ModelSource, key: str | None) -> IreeProgram:
        start = time.perf_counter()
        with noting_reads() as reads:
            program = self.read(model)
        self._reads = reads
        options = self._backend_options()
        self.backend.prepare(len(entry_block(program.main()).operations), options)
        self.optimize(program)
        ops = sum(len(entry_block(p.main()).operations) for p in (program, *self.variants.values()))
        # readers of the module see its kernels in it
        begun = None if watched() else self.backend.stream(ops, options)
        kept = None
        try:
            lowered = self.lower(program, regions=self.options.boundaries, begun=begun)
            if isinstance(model, str | os.PathLike | bytes) and not watched():
                self._let_go(program, model)
            kept = Keeping.of(key, lowered.params)
            lowered, executable = self.generate(program, lowered, begun)
            compiled = self._finish(program, lowered, executable)
        except BaseException:
            if kept is not None:
                kept.cancel()
            raise
        finally:
            if begun is not None:
                begun.close()
        # before the cache entry is written, which holds it
        self.stats.total_s = time.perf_counter() - start
        if kept is not None:
            kept.finish(compiled, reads, model, self.options, self.backend)
        self.stats.total_s = time.perf_counter() - start
        self.stats.peak_rss = peak_memory()
        return compiled

    def _let_go(self, program: ProgramIR, model: str | os.PathLike[str] | bytes) -> None:
        """Free the weights of a model that can be read again; kernels have them in their layout.

        A change of its files has to show, so weights of files without an identity are kept.
        """
        if any(read.identity is None for read in self._reads.values()):
            return
        self.model, self.before_passes = model, None
        is_large = program.store.nbytes >= _LARGE
        for p in (program, *self.variants.values()):
            p.store = WeightStore()
        if is_large:
            freed_memory.give_back()

    def _take_back(self, program: ProgramIR) -> None:
        """Make a program again whose weights were freed. Errors: FileError for a changed file."""
        if self.model is not None:
            with noting_reads() as reads:
                again, self.model = self.read(self.model), None
            for path, first in self._reads.items():
                if reads.get(path) != first:
                    raise FileError(
                        "expected the model as it was read first, got another one: the file was "
                        "replaced or changed during the compile, which reads it twice",
                        location=path,
                        notes=["compile it again"],
                    )
            self.optimize(again)
            program.ctx, program.module, program.store = again.ctx, again.module, again.store

    def after_passes(self, program: ProgramIR) -> ProgramIR:
        """Run the passes on a program whose code was cached; the cache has no values of weights."""
        self.optimize(program)
        return program

    def read(self, model: ModelSource) -> ProgramIR:
        """Import the model."""
        progress.stage("reading")
        start = time.perf_counter()
        program = program_of(model, self.options.importer)
        self.stats.import_s = time.perf_counter() - start
        return program

    def optimize(self, program: ProgramIR) -> None:
        """Run the target's passes on the program and on its variants for optimal sizes."""
        progress.stage("passes")
        start = time.perf_counter()
        state_values(program)
        self.chosen = variants_of(Signature.of(program.main()))
        self.variants = {v.function: specialised(program, v) for v in self.chosen}
        sizes = self.chosen
        alike = (
            equal_dims(program, specialised) if names_dynamic_dims(program, self.options) else None
        )
        if alike is not None:
            self.chosen += (alike[0],)
            self.variants[alike[0].function] = alike[1]
        if self.options.target != "ref" and self.options.boundaries:
            self.caches = caches_of(program)
        if self.caches:
            forms = {"main": program}
            if self.options.target == "gpu":  # known sizes are those of steps, which are in place
                forms |= {v.function: self.variants.pop(v.function) for v in sizes}
            trusted = self.options.trusts_values
            self.variants |= {in_place_name(n): in_place(p, trusted) for n, p in forms.items()}
        for p in (program, *self.variants.values()):
            before = p.clone() if names_dynamic_dims(p, self.options) else None
            unnamed = run_passes(p, self.options, before)
            self.stats.unnamed_dynamic_dims = self.stats.unnamed_dynamic_dims or unnamed
            if not self.variants and unnamed is None:
                self.before_passes = before
        if self.caches and not may_replace(self.variants[IN_PLACE], program):
            self.variants = {n: p for n, p in self.variants.items() if not is_in_place(n)}
            self.caches = ()
            for v in sizes:
                if v.function not in self.variants:
                    self.variants[v.function] = specialised(program, v)
                    run_passes(self.variants[v.function], self.options, None)
        if self.variants:
            share_weights([program, *self.variants.values()])
        if program.store.nbytes >= _LARGE:
            freed_memory.give_back()
        self.stats.passes_s = time.perf_counter() - start

    def lower(
        self,
        program: ProgramIR,
        *,
        regions: bool,
        tiles: bool = True,
        plainer: Mapping[str, int] | None = None,
        begun: Stream | None = None,
    ) -> Lowered:
        """Lower to linalg.

        regions: use our kernel boundaries; tiles: use our tiles on GPUs. plainer: see LowerOptions.
        begun: compiles kernels as soon as they are built.
        """
        progress.stage("lowering")
        start = time.perf_counter()
        s = self.options
        matmuls = dict(s.matmuls)
        arch = self.backend.arch if s.target == "gpu" else processor_of(s)
        how = LowerOptions(
            s.target, regions, arch, s.tuning.vector_kernels, tiles,
            lambda shape, _: matmuls.get(shape), s.fast_math, s.row_bits, plainer or {}, begun,
        )  # fmt: skip
        # dispatches of calls that are not in place
        listed = FUNCTION if FUNCTION in self.variants else "main"
        lowered = lower_to_linalg(program, how, self.variants, listed)
        self.stats.lowering_s = (self.stats.lowering_s or 0.0) + time.perf_counter() - start
        return lowered

    def generate(
        self, program: ProgramIR, lowered: Lowered, begun: Stream | None = None
    ) -> tuple[Lowered, Executable]:
        """Compile with the backend; on failure again with fewer of our choices."""
        progress.stage("IREE")
        start = time.perf_counter()
        lowering = self.stats.lowering_s or 0.0
        show_lowered(lowered, program)
        try:
            options = replace(self._backend_options(best=self._best_alone), begun=begun)
            lowered, executable = self._compiled(program, lowered, options)
        except CompileFailed as e:
            lowered, executable = self._refused(program, lowered, e)
        show_compiled()
        again = (self.stats.lowering_s or 0.0) - lowering
        self.stats.iree_s = time.perf_counter() - start - again
        self.stats.iree_peak_memory = executable.peak_memory
        self.stats.iree_crashes = len(executable.crashes)
        return lowered, executable

    def _compiled(
        self, program: ProgramIR, lowered: Lowered, options: BackendOptions
    ) -> tuple[Lowered, Executable]:
        """Compile kernels as separate modules; if that fails, all of them in one module."""
        try:
            return lowered, self.backend.compile_lowered(lowered, options)
        except KernelsLeftOut:
            self._take_back(program)
            lowered = self.lower(program, regions=self.options.boundaries)
            return lowered, self.backend.compile_lowered(lowered, replace(options, begun=None))

    def _backend_options(
        self, *, best: bool = False, after: CompileFailed | None = None
    ) -> BackendOptions:
        cache = self.options.cache and not watched()
        return BackendOptions(self.options.timeout, cache=cache, best=best, after=after)

    def _refused(
        self, program: ProgramIR, lowered: Lowered, failed: CompileFailed
    ) -> tuple[Lowered, Executable]:
        """Compile again after a failure: with fewer of our choices, or on CPUs with other flags."""
        if not self.options.boundaries:
            failed.notes = (*failed.notes, _NO_BOUNDARIES)
            raise failed
        if failed.cause == "other" and failed.kind != "crash":
            raise failed
        self._take_back(program)
        found = self._with_plainer_kernels(program, lowered, failed)
        if found is not None:
            return found
        if not self._best_alone:
            return self._with_less(program, failed)
        if self.before_passes is not None and failed.cause == "kernel":
            return self._with_less(program, failed)  # costs less speed than other flags
        try:
            return self._compiled(program, lowered, self._backend_options(after=failed))
        except CompileFailed as e:
            return self._with_less(program, e)

    @property
    def _best_alone(self) -> bool:
        """Return whether only the best flags are tried: a refused kernel may have a plainer
        form.
        """
        return self.options.boundaries and self.options.target == "cpu"

    def _with_plainer_kernels(
        self, program: ProgramIR, lowered: Lowered, failed: CompileFailed
    ) -> tuple[Lowered, Executable] | None:
        """Compile again with the refused kernel in a plainer form, all others as they are.

        A crash names no kernel, so the kernel is found by bisection. None where no kernel is found,
        or none of its forms compiles. Logged, and recorded in the executable's `fallbacks`.
        """
        plainer = PlainerKernels(self.options.target, lowered.kernels)
        while plainer.add(failed):
            again = self.lower(program, regions=True, plainer=plainer.levels)
            try:
                executable = self.backend.compile_lowered(again, self._backend_options(best=True))
            except CompileFailed as e:
                failed = e
                continue
            return again, self._lost(executable, plainer.reasons)
        if failed.kind != "crash":
            return None
        search, found = CrashSearch(self.options.target, lowered.kernels), None
        while (levels := search.trial()) is not None:
            again = self.lower(program, regions=True, plainer=levels)
            try:
                made = self.backend.compile_lowered(again, self._backend_options(best=True))
            except CompileFailed:
                search.note(compiled=False)
            else:
                search.note(compiled=True)
                found = again, made
        return found and (found[0], self._lost(found[1], [search.reason(failed.message)]))

    def _lost(self, executable: Executable, reasons: Sequence[str]) -> Executable:
        """Log kernels that were compiled in a plainer form, and return the executable with that
        record.
        """
        for reason in reasons:
            log.warning("%s: compiled without the %s", self.options.target, reason)
        return replace(
            executable, fallbacks=(*(f"kernel: {r}" for r in reasons), *executable.fallbacks)
        )

    def _with_less(self, program: ProgramIR, failed: CompileFailed) -> tuple[Lowered, Executable]:
        """Compile again without names of dynamic dims, then with IREE's tiles, then with IREE's
        kernels.

        IREE may split a kernel that failed. The fallback is logged, and recorded first in the
        executable's `fallbacks`.
        """
        without = {"kernel-boundaries": (False, False)}
        if self.options.target == "gpu":
            without = {"tiles": (True, False), **without}
        if self.before_passes is not None:
            without = {"names-of-dynamic-dims": (True, True), **without}
        for name, (regions, tiles) in without.items():
            if name == "names-of-dynamic-dims" and self.before_passes is not None:
                run_unnamed(program, self.options, self.before_passes)
            lowered = self.lower(program, regions=regions, tiles=tiles)
            try:
                executable = self.backend.compile_lowered(lowered, self._backend_options())
            except CompileFailed:
                continue
            where = f"{failed.location}: " if failed.location else ""
            log.warning(
                "%s: compiled with %s off, because with them %s%s",
                self.options.target, name.replace("-", " "), where, failed.message,
            )  # fmt: skip
            lost = (f"{name}: {where}{failed.message}", *executable.fallbacks)
            return lowered, replace(executable, fallbacks=lost)
        raise failed from None

    def _finish(self, program: ProgramIR, lowered: Lowered, executable: Executable) -> IreeProgram:
        adopt(program, self.variants)
        with program.ctx:
            text = operand_segments.asm(program.module.operation, enable_debug_info=True)
        return IreeProgram(
            self.options.placement,
            with_variants(Signature.of(program.main()), self.chosen, self.caches),
            lowered.kernels,
            self.stats,
            executable=executable,
            params=lowered.params,
            program=program if self.model is None else None,
            module_text=text,
            threads=self.options.run_threads,
        )

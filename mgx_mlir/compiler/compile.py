"""compile(): a model or a program in, a compiled program out."""

from __future__ import annotations

import json
import logging
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.api.parse import with_onnx_dims
from mgx_mlir.compiler import environment
from mgx_mlir.compiler.architectures import named, of_device, together
from mgx_mlir.compiler.compiled import CompiledProgram, CompileSettings, IreeProgram, RefProgram
from mgx_mlir.compiler.dumps import dump_flags, show_compiled, show_lowered
from mgx_mlir.compiler.environment import watched
from mgx_mlir.compiler.tuning.search import Inputs, describe, describe_products, search
from mgx_mlir.compiler.tuning.solutions import Tuning, is_kept, kept_products, lookup
from mgx_mlir.compiler.variants import adopt, share_weights, specialised, variants_of, with_variants
from mgx_mlir.core import operand_segments
from mgx_mlir.core.errors import CompileError, FileError, UsageError
from mgx_mlir.core.files import ReadFile, noting_reads
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.dialects.migraphx.buffers import Unknown
from mgx_mlir.frontends.mlir_files import read_mlir
from mgx_mlir.frontends.onnx.registry import has_foreign
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.passes.analysis.input_values import state_values
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.lowered import Lowered, kernel_infos
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.rewrite_trace import disabled
from mgx_mlir.rewrite.switches import flag, switches

if TYPE_CHECKING:
    from mgx_mlir.targets.diagnostics import CompileFailed

log = logging.getLogger(__name__)

MODEL_SUFFIXES = {
    ".onnx": "onnx", ".mlir": "mlir", ".mxr": "mxr", ".json": "json",
    ".pb": "tf", ".pbtxt": "tf", ".keras": "tf", ".h5": "tf",
}  # fmt: skip


# ---- compiling -----------------------------------------------------------------------------------


def compile(
    model: str | os.PathLike[str] | bytes | ProgramIR | Any,
    target: str | None = None,
    *,
    threads: int | None = None,
    arch: str | Sequence[str] | None = None,
    cache: bool = True,
    fast_math: bool = True,
    disable: Sequence[str] = (),
    kernel_boundaries: bool = True,
    ref_double: bool = False,
    timeout: float | None = None,
    exhaustive_tune: bool = False,
    tuning_inputs: Inputs | None = None,
    emulate: bool = False,
    device_id: int = 0,
    **onnx_options: Any,
) -> CompiledProgram:
    """Compile a model for a target.

    `model` is a path (.onnx, .pb, .mlir, .mxr, .json, a SavedModel's folder), the bytes of an
    ONNX file, a ProgramIR, or an API program.
    `target` is "ref", "cpu" or "gpu" (None: gpu where a HIP device is found, else cpu); `arch` a
    gfx or product name for gpu, a processor name for cpu; of several ("gfx942,gfx1100", or a list)
    the one that fits the device is run. `threads` (None: all) counts CPU threads of a run.
    `device_id` is which of several GPUs it runs on. `onnx_options` are those of parse_onnx, or the
    fields of TfOptions. `ref_double` makes `ref` compute in f64. `exhaustive_tune` compiles in
    several ways, times them on `tuning_inputs(signature)`, and keeps the fastest in the tuning
    file, from which later compiles take it; on gpu each matrix product first, by the bound of its
    code where there is no device. `emulate` runs a gpu program on the emulator of AMD
    GPUs. `timeout` seconds end the backend's compile; without it 600 do, and 6 more for each
    kernel, after which the backend chooses the kernels itself, within as long again.
    Raises MgxError: unreadable models, unsupported operators, failed compilation.
    """
    from mgx_mlir.targets import default_target

    name = target or default_target()
    if isinstance(model, bytearray | memoryview):
        model = bytes(model)  # it may change while it is read
    if name == "gpu":
        archs = [*named(arch)] or [of_device(device_id, emulate=emulate)]
        if len(archs) > 1:
            made = [
                compile(
                    model, name, threads=threads, arch=a, cache=cache, fast_math=fast_math,
                    disable=disable, kernel_boundaries=kernel_boundaries, timeout=timeout,
                    exhaustive_tune=exhaustive_tune, tuning_inputs=tuning_inputs, emulate=emulate,
                    device_id=device_id, **onnx_options,
                )
                for a in archs
            ]  # fmt: skip
            programs = [p for p in made if isinstance(p, IreeProgram)]
            return together(programs, of_device(device_id, emulate=emulate))
        arch = archs[0]
    elif device_id:
        raise UsageError(f"only gpu programs have a device_id, the target is {name}")
    if not isinstance(arch, str | None):
        raise UsageError(f"expected one processor's name, got {arch!r}")
    settings = CompileSettings(
        name, arch, fast_math, tuple(disable), kernel_boundaries, cache, timeout, onnx_options,
        emulate=emulate,
    )  # fmt: skip
    if emulate:
        _check_emulation(settings)
    start = time.perf_counter()
    if name == "ref":
        if exhaustive_tune:
            raise UsageError("nothing can be tuned for ref: it interprets each operator")
        stats: dict[str, Any] = {"cached": False}
        program = _read(model, settings, stats)
        _refuse_unknown(program)
        state_values(program)
        run_pipeline(program.module, pipeline("ref"), store=program.store)
        stats["total_s"] = time.perf_counter() - start
        return RefProgram(settings, program, stats, "f64" if ref_double else "f32")
    exhaustive_tune = exhaustive_tune or flag("MIGRAPHX_MLIR_TUNE_EXHAUSTIVE")
    problem = _problem(model, settings, threads) if exhaustive_tune or is_kept() else {}
    lines: list[str] = []
    if name == "gpu" and problem:
        if exhaustive_tune:
            lines += _tune_products(model, settings)
        found = kept_products(_backend(settings, None).arch)
        settings = replace(settings, products=tuple(found.items()))
        lines = lines or describe_products(len(found))
    known = lookup(problem) if problem else None
    if exhaustive_tune and known is None and (name != "gpu" or _is_timed(settings)):
        compiled = _tuned(model, settings, threads, problem, tuning_inputs)
        lines += compiled.stats["tuning"]
    else:
        if known is not None:
            settings = replace(settings, tuning=known)
            lines.append(describe(known))
        compiled = _compile(model, settings, threads)
    compiled.device_id = device_id
    if lines:
        compiled.stats["tuning"] = lines
    return compiled


def _refuse_unknown(program: ProgramIR) -> None:
    """CompileError for operators that no importer took: other targets find them when they lower."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_a(op, Unknown):
            name = ir.StringAttr(op.attributes["op"]).value
            found.append(
                f"{op.location}: 'migraphx.unknown' op cannot be compiled: nobody knows what "
                f"'{name}' computes"
            )
        return ir.WalkResult.ADVANCE

    program.module.operation.walk(visit)
    if found:
        raise CompileError(f"{len(found)} operations cannot be compiled for ref", notes=found)


def _check_emulation(settings: CompileSettings) -> None:
    """Errors: UsageError for another target, TargetError where the emulator is not built."""
    from mgx_mlir.targets import emulator, get_target

    if settings.target != "gpu":
        raise UsageError(f"only gpu programs are emulated, the target is {settings.target}")
    emulator.check_arch(get_target("gpu", architecture=settings.arch).arch)
    emulator.activate()


def _compile(model: Any, settings: CompileSettings, threads: int | None) -> CompiledProgram:
    """Compile for cpu or gpu, or take the program from the cache."""
    start = time.perf_counter()
    stats: dict[str, Any] = {"cached": False}
    backend = _backend(settings, threads)
    threads = threads or settings.tuning.threads
    key = _program_key(model, settings, backend)
    if key is not None:
        found = _from_cache(key, settings, stats, threads)
        if found is not None:
            found.stats["total_s"] = time.perf_counter() - start
            return found
    with noting_reads() as reads:
        program = _read(model, settings, stats)
    compiled = _compile_program(program, settings, backend, stats, threads)
    if key is not None:
        _to_cache(key, compiled, reads)
    stats["total_s"] = time.perf_counter() - start
    stats["peak_rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return compiled


def _tuned(
    model: Any,
    settings: CompileSettings,
    threads: int | None,
    problem: Mapping[str, Any],
    inputs: Inputs | None,
) -> CompiledProgram:
    """The fastest of the programs that a search makes."""

    def compile_with(tuning: Tuning) -> CompiledProgram:
        return _compile(model, replace(settings, tuning=tuning), threads)

    best, found = search(problem, settings.target, compile_with, threads=threads, inputs=inputs)
    best.stats["tuning"] = found.lines()
    return best


def _is_timed(settings: CompileSettings) -> bool:
    """Whether a GPU is here to say what a program takes."""
    from mgx_mlir.targets.devices import hip_devices

    return not settings.emulate and bool(hip_devices())


def _tune_products(model: Any, settings: CompileSettings) -> list[str]:
    """Search how the products of a program for GPUs are computed; what was found, as lines."""
    from mgx_mlir.compiler.tuning.cost_models import by_bound, by_time
    from mgx_mlir.compiler.tuning.gemm_search import search_products

    backend = _backend(settings, None)
    program = _read(model, settings, {})
    _run_passes(program, settings)
    timed = _is_timed(settings)
    judge = (by_time if timed else by_bound)(backend.arch, backend.opt_level, settings.timeout)
    found = search_products(program, backend.arch, judge, "time" if timed else "bound")
    return found.lines()


def _problem(model: Any, settings: CompileSettings, threads: int | None) -> dict[str, Any]:
    """What a solution is for: the program, what it is compiled with, and the machine."""
    from mgx_mlir.targets.cache import digest, hash_file
    from mgx_mlir.targets.child import compiler_version
    from mgx_mlir.targets.flags import host_cpu

    if hasattr(model, "program_ir"):
        model = model.program_ir
    if isinstance(model, ProgramIR):
        source = digest(model.text())
    elif isinstance(model, bytes | bytearray | memoryview):
        source = digest(bytes(model))
    elif os.path.isfile(model):
        source = hash_file(Path(model))
    else:
        source = os.path.abspath(os.fspath(model))
    try:
        row = replace(settings, tuning=Tuning(), products=()).key()
    except TypeError as e:
        raise UsageError(f"a solution is looked up by the options: {e}") from None
    options = digest(json.dumps(row, sort_keys=True), source)
    arch = settings.arch or ("host" if settings.target == "cpu" else "default")
    host = host_cpu() if settings.target == "cpu" else ""
    return {
        "name": f"{settings.target}::program",
        "problem": {"program": options, "arch": arch, "host": host,
                    "threads": threads or available_cpus(), "compiler": compiler_version()},
    }  # fmt: skip


def _backend(settings: CompileSettings, threads: int | None) -> Any:
    from mgx_mlir.targets import get_target

    level = environment.level(settings.target, settings.tuning.opt_level)
    extra = (*environment.backend_flags(settings.target), *dump_flags())
    if settings.target == "gpu":
        return get_target("gpu", architecture=settings.arch, opt_level=level, extra_flags=extra)
    if settings.target == "cpu":
        tiling = settings.tuning.data_tiling
        cpu = settings.arch or "host"
        return get_target(
            "cpu", threads=threads, cpu=cpu, opt_level=level, data_tiling=tiling, extra_flags=extra
        )
    return get_target(settings.target)


def _read(model: Any, settings: CompileSettings, stats: dict[str, Any]) -> ProgramIR:
    """The program of whatever the user gave; never one that the user holds."""
    start = time.perf_counter()
    if isinstance(model, ProgramIR):
        program = model.clone()
    elif hasattr(model, "program_ir"):
        program = model.program_ir.clone()
    else:
        program = read_model(model, settings.onnx)
    stats["import_s"] = time.perf_counter() - start
    return program


def read_model(
    model: str | os.PathLike[str] | bytes, onnx_options: Mapping[str, Any] | None = None
) -> ProgramIR:
    """Read a model file (its kind by its name), a SavedModel, or the bytes of an ONNX model."""
    options = with_onnx_dims(onnx_options or {})
    if isinstance(model, bytes | bytearray | memoryview):
        return _onnx(bytes(model), options)
    path = Path(os.fspath(model))
    kind = MODEL_SUFFIXES.get(path.suffix.lower())
    if kind == "tf" or (kind is None and os.path.isdir(path)):
        return _tf(path, options)
    if kind == "mlir":
        return read_mlir(path)
    if kind in ("mxr", "json"):
        from mgx_mlir.frontends.mxr.reader import read_file

        return read_file(path, "json" if kind == "json" else "msgpack").program
    if kind is None:
        known = ", ".join(MODEL_SUFFIXES)
        raise FileError(f"unknown model type '{path.suffix}'", location=str(path),
                        notes=[f"expected a file that ends in {known}"])  # fmt: skip
    return _onnx(path, options)


def _onnx(source: Path | bytes, options: dict[str, Any]) -> ProgramIR:
    from mgx_mlir.frontends.onnx.importer import parse_onnx, parse_onnx_buffer
    from mgx_mlir.frontends.onnx.options import OnnxOptions

    try:
        chosen = OnnxOptions(**options)
    except TypeError as e:
        raise UsageError(f"compile() {str(e).removeprefix('OnnxOptions.__init__() ')}") from None
    if isinstance(source, bytes):
        return parse_onnx_buffer(source, chosen)
    return parse_onnx(source, chosen)


def _tf(path: Path, options: dict[str, Any]) -> ProgramIR:
    from mgx_mlir.frontends.tf.options import TfOptions
    from mgx_mlir.frontends.tf.program import parse_tf

    try:
        chosen = TfOptions(**options)
    except TypeError as e:
        raise UsageError(f"compile() {str(e).removeprefix('TfOptions.__init__() ')}") from None
    return parse_tf(path, chosen)


def _compile_program(
    program: ProgramIR,
    settings: CompileSettings,
    backend: Any,
    stats: dict[str, Any],
    threads: int | None,
) -> IreeProgram:
    from mgx_mlir.targets import CompileOptions
    from mgx_mlir.targets.diagnostics import CompileFailed

    start = time.perf_counter()
    state_values(program)
    chosen = variants_of(Signature.of(program.main()))
    variants = {v.function: specialised(program, v) for v in chosen}
    for p in (program, *variants.values()):
        _run_passes(p, settings)
    if variants:
        share_weights([program, *variants.values()])
    stats["passes_s"] = time.perf_counter() - start
    start = time.perf_counter()

    def lower(regions: bool, tiles: bool = True) -> Lowered:
        from mgx_mlir.passes.lower.module import LowerOptions, lower_to_linalg

        products = dict(settings.products)
        options = LowerOptions(
            settings.target, regions, _architecture(settings, backend),
            settings.tuning.vector_kernels, tiles, lambda product, _: products.get(product),
        )  # fmt: skip
        return lower_to_linalg(program, options, variants)

    lowered = lower(settings.boundaries)
    stats["lowering_s"] = time.perf_counter() - start
    start = time.perf_counter()
    how = CompileOptions(timeout=settings.timeout, cache=settings.cache and not watched())
    show_lowered(lowered, program)
    try:
        executable = backend.compile_lowered(lowered, how)
    except CompileFailed as e:
        if not settings.boundaries:
            off = (
                "with kernel boundaries off the backend chose the kernels, and cannot compile them"
            )
            e.notes = (*e.notes, f"{off}: leave kernel_boundaries on")
            raise
        if e.cause == "other":
            raise
        lowered, executable = _with_less(lower, settings, backend, how, e)
    show_compiled()
    stats["iree_s"] = time.perf_counter() - start
    stats["iree_peak_memory"] = executable.peak_memory
    stats["iree_crashes"] = len(executable.crashes)
    adopt(program, variants)
    with program.ctx:
        text = operand_segments.asm(program.module.operation, enable_debug_info=True)
    return IreeProgram(
        settings,
        with_variants(Signature.of(program.main()), chosen),
        lowered.kernels,
        stats,
        executable=executable,
        params=lowered.params,
        program=program,
        module_text=text,
        threads=threads,
    )


def _architecture(settings: CompileSettings, backend: Any) -> str:
    """What kernels are made for: a processor, or the gfx name of a GPU."""
    return backend.arch if settings.target == "gpu" else _processor(settings)


def _processor(settings: CompileSettings) -> str:
    """The processor that kernels are made for."""
    return (settings.arch or "host") if settings.target == "cpu" else "host"


def steps_of(settings: CompileSettings) -> tuple[str, ...]:
    """The passes of a compile, as its options and the environment want them."""
    from mgx_mlir.passes.lower.cpu.isa import isa_of

    loops = settings.tuning.vector_kernels and isa_of(_processor(settings)) is not None
    steps = pipeline(
        settings.target,
        fast_math=settings.fast_math,
        fuse=settings.boundaries,
        vector_kernels=loops,
    )
    return environment.adjusted(steps, settings.target)


def _run_passes(program: ProgramIR, settings: CompileSettings) -> None:
    """The target's pipeline. CompileError where it leaves a program that is invalid."""
    steps = steps_of(settings)
    with disabled(environment.left_out_rewrites()):
        run_pipeline(
            program.module, steps, store=program.store, verify=False, disable=settings.disable
        )
    with program.ctx:
        if not program.module.operation.verify():
            raise CompileError("the program is invalid after the passes")
    program.prune_store()


def _with_less(
    lower: Callable[..., Lowered],
    settings: CompileSettings,
    backend: Any,
    how: Any,
    failed: CompileFailed,
) -> tuple[Lowered, Any]:
    """Compile again with tiles of the backend's own choice, then with its own kernels: it may cut
    in several what failed as one.

    That is logged, and recorded first in the executable's `fallbacks`.
    """
    from mgx_mlir.targets.diagnostics import CompileFailed

    without = {"kernel-boundaries": (False, False)}
    if settings.target == "gpu":
        without = {"tiles": (True, False), **without}
    for name, (regions, tiles) in without.items():
        lowered = lower(regions, tiles)
        try:
            executable = backend.compile_lowered(lowered, how)
        except CompileFailed:
            continue
        where = f"{failed.location}: " if failed.location else ""
        log.warning(
            "%s: compiled with %s off, because with them %s%s",
            settings.target, name.replace("-", " "), where, failed.message,
        )  # fmt: skip
        lost = (f"{name}: {where}{failed.message}", *executable.fallbacks)
        return lowered, replace(executable, fallbacks=lost)
    raise failed from None


# ---- the cache of whole programs -----------------------------------------------------------------


def _program_key(model: Any, settings: CompileSettings, backend: Any) -> str | None:
    """The cache key of a model file and every option, None where it cannot be looked up."""
    from mgx_mlir.targets.cache import default_cache, digest, program_key

    store = default_cache() if settings.cache else None
    if store is None:
        return None
    if switches().traces or watched():  # a hit runs no pass: there would be nothing to see
        return None
    if has_foreign():  # importers of the user's, whose code the key would not hold
        return None
    if isinstance(model, bytes):
        files = [digest(model)]
    elif isinstance(model, str | os.PathLike) and os.path.isfile(model):
        files = [store.file_digest(model), str(os.path.abspath(os.fspath(model)))]
    else:
        return None
    flags = [list(s.flags) for s in backend.ladder()]
    from mgx_mlir.targets.flags import host_cpu

    try:
        options = settings.key()
    except TypeError:  # an option of a kind that has no text: another one could look the same
        return None
    return program_key(files, {**options, "flags": flags, "host": host_cpu()})


def _from_cache(
    key: str, settings: CompileSettings, stats: dict[str, Any], threads: int | None
) -> CompiledProgram | None:
    from mgx_mlir.targets.base import executable_of
    from mgx_mlir.targets.cache import default_cache

    store = default_cache()
    found = store.get_program(key) if store is not None else None
    if store is None or found is None:
        return None
    try:
        manifest = found.manifest
        for path, digest in manifest["external"]:
            if store.file_digest(path) != digest:
                return None
        signature = Signature.from_json(manifest["signature"])
        kernels = kernel_infos(manifest["kernels"])
        executable = executable_of(manifest["module"], found.modules["main"])
    except (KeyError, TypeError, ValueError, FileError):
        return None
    stats.update({"cached": True, "import_s": 0.0, "passes_s": 0.0, "lowering_s": 0.0,
                  "iree_s": 0.0, "iree_peak_memory": executable.peak_memory,
                  "iree_crashes": len(executable.crashes)})  # fmt: skip
    return IreeProgram(
        settings,
        signature,
        kernels,
        stats,
        executable=executable,
        params=found.params,
        module_text=manifest["text"],
        threads=threads,
    )


def _to_cache(key: str, compiled: IreeProgram, reads: Mapping[str, ReadFile]) -> None:
    """Store a program under its key, with what was read: the model's file, external data.

    Nothing is stored where a file is not known to have the bytes that were read. One that changed
    between the key and the reading is stored with its new digest, and never found.
    """
    from mgx_mlir.targets.cache import default_cache

    store = default_cache()
    if store is None:
        return
    external: list[tuple[str, str]] = []
    for read in reads.values():
        try:
            digest, identity = store.dated_digest(read.path)
        except FileError:
            identity = None
        if identity is None or identity != read.identity:
            log.info("%s: not cached, the file is new or changed meanwhile", read.path)
            return
        external.append((read.path, digest))
    manifest = {
        "signature": compiled.signature.to_json(),
        "kernels": [asdict(k) for k in compiled.kernels],
        "text": compiled.module_text,
        "module": compiled.executable.key,
        "external": external,
    }
    store.put_program(key, manifest, {"main": compiled.executable.key}, compiled.params)


__all__ = [
    "MODEL_SUFFIXES",
    "CompileSettings",
    "CompiledProgram",
    "IreeProgram",
    "RefProgram",
    "compile",
    "read_model",
]

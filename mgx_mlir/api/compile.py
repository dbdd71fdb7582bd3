"""compile(): a model or a program in, a compiled program out."""

from __future__ import annotations

import logging
import os
import resource
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.api.mlir_files import read_mlir
from mgx_mlir.core import segments
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import CompileError, FileError, UsageError
from mgx_mlir.core.interpreter import Interpreter, Trace
from mgx_mlir.core.lowered import KernelInfo, Lowered, kernel_infos
from mgx_mlir.core.observe import disabled_names
from mgx_mlir.core.passes import run_pipeline
from mgx_mlir.core.program_ir import ProgramIR
from mgx_mlir.core.signature import Signature
from mgx_mlir.core.switches import switches
from mgx_mlir.frontends.onnx.registry import has_foreign
from mgx_mlir.passes.pipelines import pipeline

if TYPE_CHECKING:
    from mgx_mlir.targets.diagnostics import CompileFailed

log = logging.getLogger(__name__)

MODEL_SUFFIXES = {
    ".onnx": "onnx", ".mlir": "mlir", ".mxr": "mxr", ".json": "json",
    ".pb": "tf", ".pbtxt": "tf", ".keras": "tf", ".h5": "tf",
}  # fmt: skip


@dataclass(frozen=True)
class CompileSettings:
    """What a compile depends on besides the program.

    fast_math: rewrites that change rounding. disable: passes to leave out. kernel_boundaries: off
    leaves fusion to IREE. cache: look up and keep results. timeout: seconds of the backend.
    """

    target: str = "cpu"
    arch: str | None = None
    fast_math: bool = True
    disable: tuple[str, ...] = ()
    kernel_boundaries: bool = True
    cache: bool = True
    timeout: float | None = None
    onnx: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> dict[str, Any]:
        """The options as JSON values, for the cache."""
        row = asdict(self)
        row.pop("cache")
        row.pop("timeout")
        row["onnx"] = {k: _spelled(v) for k, v in sorted(self.onnx.items())}
        row["disable"] = [*self.disable, *sorted(switches().disable)]
        row["disabled_rewrites"] = sorted(disabled_names())
        return row


def _spelled(option: Any) -> str:
    """An option of the frontend as text, arrays in it in full."""
    if isinstance(option, Mapping):
        return repr({k: _spelled(v) for k, v in sorted(option.items())})
    if isinstance(option, np.ndarray):
        return f"{option.dtype.name}{list(option.shape)} {option.tobytes().hex()}"
    return repr(option)


class CompiledProgram:
    """A program ready to run on a target.

    `signature` names inputs and outputs; `kernels` are what the fusion made; `stats` holds the
    seconds of each stage and the peak memory; `executable` is what the backend made. `program` is
    the program after the passes. Runs may come from many threads.
    """

    def __init__(
        self,
        settings: CompileSettings,
        signature: Signature,
        kernels: Sequence[KernelInfo],
        stats: dict[str, Any],
    ) -> None:
        self.settings, self.signature = settings, signature
        self.kernels, self.stats = list(kernels), stats

    @property
    def target(self) -> str:
        return self.settings.target

    @property
    def input_names(self) -> list[str]:
        return self.signature.input_names

    @property
    def output_names(self) -> list[str]:
        return self.signature.output_names

    @property
    def program(self) -> ProgramIR:
        """The program after the passes, kernels and all."""
        raise NotImplementedError

    def run(
        self, inputs: Mapping[str, Any] | None = None, /, *args: Any, **named: Any
    ) -> list[Any]:
        """Run on numpy arrays by input name; the outputs in order.

        An input or output that is a sequence in the model is a list of arrays. Everything about
        the inputs is checked before anything runs. Raises RunError.
        """
        if args or (inputs is not None and not isinstance(inputs, Mapping)):
            values = [inputs, *args]
            if len(values) > len(self.input_names):
                raise UsageError(f"expected {len(self.input_names)} inputs, got {len(values)}")
            inputs = dict(zip(self.input_names, values, strict=False))
        arrays = self.signature.check_inputs({**(inputs or {}), **named})
        return self.signature.stated(self.execute(arrays))

    __call__ = run

    def execute(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on checked arrays in order of the inputs."""
        raise NotImplementedError


class RefProgram(CompiledProgram):
    """The reference: each op interpreted in numpy."""

    def __init__(
        self, settings: CompileSettings, program: ProgramIR, stats: dict[str, Any], compute: str
    ) -> None:
        super().__init__(settings, Signature.of(program.main()), [], stats)
        self._program = program
        self._interpreter = Interpreter(program.module, program.store, compute=compute)

    @property
    def program(self) -> ProgramIR:
        return self._program

    def execute(self, arrays: Sequence[np.ndarray], trace: Trace | None = None) -> list[np.ndarray]:
        """Run; `trace(op, results)` is called after each instruction."""
        named = {p.name: a for p, a in zip(self.signature.inputs, arrays, strict=True)}
        with self._program.ctx:
            return self._interpreter.run(named, trace=trace)


class IreeProgram(CompiledProgram):
    """A program compiled by IREE, for the CPU or a GPU; loaded at its first run."""

    def __init__(
        self,
        settings: CompileSettings,
        signature: Signature,
        kernels: Sequence[KernelInfo],
        stats: dict[str, Any],
        *,
        executable: Any,
        params: Mapping[str, np.ndarray],
        program: ProgramIR | None = None,
        module_text: str = "",
        threads: int | None = None,
    ) -> None:
        super().__init__(settings, signature, kernels, stats)
        self.executable, self.params, self.threads = executable, params, threads
        self._program, self._module_text = program, module_text
        self._loaded: Any = None
        self._lock = threading.Lock()

    @property
    def program(self) -> ProgramIR:
        """After the passes; of one taken from the cache, without the weights' values."""
        if self._program is None:
            ctx = new_context()
            module = segments.parse_module(self._module_text, ctx)
            self._program = ProgramIR(ctx, module)
        return self._program

    def load(self) -> Any:
        """The module on its device, loaded once. TargetError where the device is missing."""
        with self._lock:
            if self._loaded is None:
                from mgx_mlir.runtime.iree_runtime import LoadedModule

                start = time.perf_counter()
                self._loaded = LoadedModule(
                    self.executable.vmfb,
                    self.params,
                    inputs=list(self.signature.inputs),
                    outputs=list(self.signature.outputs),
                    device="hip" if self.target == "gpu" else None,
                    threads=self.threads,
                )
                self.stats["load_s"] = time.perf_counter() - start
            return self._loaded

    def execute(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        loaded = self._loaded or self.load()
        return loaded.run(arrays)


# ---- compiling -----------------------------------------------------------------------------------


def compile(
    model: str | os.PathLike[str] | bytes | ProgramIR | Any,
    target: str | None = None,
    *,
    threads: int | None = None,
    arch: str | None = None,
    cache: bool = True,
    fast_math: bool = True,
    disable: Sequence[str] = (),
    kernel_boundaries: bool = True,
    ref_double: bool = False,
    timeout: float | None = None,
    **onnx_options: Any,
) -> CompiledProgram:
    """Compile a model for a target.

    `model` is a path (.onnx, .pb, .mlir, .mxr, .json, a SavedModel's folder), the bytes of an
    ONNX file, a ProgramIR, or an API program.
    `target` is "ref", "cpu" or "gpu" (None: gpu where a HIP device is found, else cpu); `arch` a
    gfx or product name for gpu, a processor name for cpu. `threads` (None: all) counts CPU
    threads of a run. `onnx_options` are those of parse_onnx, or the fields of TfOptions.
    `ref_double` makes `ref` compute in f64. Raises MgxError: unreadable models, unsupported
    operators, failed compilation.
    """
    from mgx_mlir.targets import default_target

    name = target or default_target()
    settings = CompileSettings(
        name, arch, fast_math, tuple(disable), kernel_boundaries, cache, timeout, onnx_options
    )
    start = time.perf_counter()
    stats: dict[str, Any] = {"cached": False}
    if name == "ref":
        program = _read(model, settings, stats)
        run_pipeline(program.module, pipeline("ref"), store=program.store)
        stats["total_s"] = time.perf_counter() - start
        return RefProgram(settings, program, stats, "f64" if ref_double else "f32")
    backend = _backend(settings, threads)
    key = _program_key(model, settings, backend)
    if key is not None:
        found = _from_cache(key, settings, stats, threads)
        if found is not None:
            found.stats["total_s"] = time.perf_counter() - start
            return found
    program = _read(model, settings, stats)
    compiled = _compile_program(program, settings, backend, stats, threads, key)
    stats["total_s"] = time.perf_counter() - start
    stats["peak_rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return compiled


def _backend(settings: CompileSettings, threads: int | None) -> Any:
    from mgx_mlir.targets import get_target

    if settings.target == "gpu":
        return get_target("gpu", architecture=settings.arch)
    if settings.target == "cpu":
        return get_target("cpu", threads=threads, cpu=settings.arch or "host")
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
    options = dict(onnx_options or {})
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
    key: str | None,
) -> CompiledProgram:
    from mgx_mlir.passes.lower.module import LowerOptions, lower_to_linalg
    from mgx_mlir.passes.lower.vector.isa import isa_of
    from mgx_mlir.targets import CompileOptions
    from mgx_mlir.targets.diagnostics import CompileFailed

    start = time.perf_counter()
    cpu = (settings.arch or "host") if settings.target == "cpu" else "host"
    steps = pipeline(
        settings.target,
        fast_math=settings.fast_math,
        fuse=settings.kernel_boundaries,
        vector_kernels=isa_of(cpu) is not None,
    )
    run_pipeline(program.module, steps, store=program.store, verify=False, disable=settings.disable)
    with program.ctx:
        if not program.module.operation.verify():
            raise CompileError("the program is invalid after the passes")
    program.prune_store()
    stats["passes_s"] = time.perf_counter() - start
    start = time.perf_counter()
    options = LowerOptions(settings.target, regions=settings.kernel_boundaries, cpu=cpu)
    lowered = lower_to_linalg(program, options)
    signature = Signature.of(program.main())
    stats["lowering_s"] = time.perf_counter() - start
    start = time.perf_counter()
    how = CompileOptions(timeout=settings.timeout, cache=settings.cache)
    try:
        executable = backend.compile_lowered(lowered, how)
    except CompileFailed as e:
        if not settings.kernel_boundaries or e.kind not in ("compile", "crash"):
            raise
        lowered, executable = _without_boundaries(program, settings, backend, how, e)
    stats["iree_s"] = time.perf_counter() - start
    stats["iree_peak_memory"] = executable.peak_memory
    with program.ctx:
        text = segments.asm(program.module.operation, enable_debug_info=True)
    compiled = IreeProgram(
        settings,
        signature,
        lowered.kernels,
        stats,
        executable=executable,
        params=lowered.params,
        program=program,
        module_text=text,
        threads=threads,
    )
    if key is not None:
        _to_cache(key, compiled, text)
    return compiled


def _without_boundaries(
    program: ProgramIR, settings: CompileSettings, backend: Any, how: Any, failed: CompileFailed
) -> tuple[Lowered, Any]:
    """Compile again with the backend's own kernels: it may cut in several what failed as one.

    That is logged, and recorded first in the executable's `fallbacks`.
    """
    from mgx_mlir.passes.lower.module import LowerOptions, lower_to_linalg
    from mgx_mlir.targets.diagnostics import CompileFailed

    lowered = lower_to_linalg(program, LowerOptions(settings.target, regions=False))
    try:
        executable = backend.compile_lowered(lowered, how)
    except CompileFailed:
        raise failed from None
    where = f"{failed.location}: " if failed.location else ""
    log.warning(
        "%s: compiled with kernel boundaries off, because with them %s%s",
        settings.target, where, failed.message,
    )  # fmt: skip
    lost = (f"kernel-boundaries: {where}{failed.message}", *executable.fallbacks)
    return lowered, replace(executable, fallbacks=lost)


# ---- the cache of whole programs -----------------------------------------------------------------


def _program_key(model: Any, settings: CompileSettings, backend: Any) -> str | None:
    """The cache key of a model file and every option, None where it cannot be looked up."""
    from mgx_mlir.targets.cache import default_cache, digest, program_key

    store = default_cache() if settings.cache else None
    if store is None or switches().traces:  # a hit runs no pass: there would be nothing to see
        return None
    if has_foreign():  # importers of the user's, whose code the key would not hold
        return None
    if isinstance(model, bytes | bytearray | memoryview):
        files = [digest(bytes(model))]
    elif isinstance(model, str | os.PathLike) and os.path.isfile(model):
        files = [store.file_digest(model), str(os.path.abspath(os.fspath(model)))]
    else:
        return None
    flags = [list(s.flags) for s in backend.ladder()]
    from mgx_mlir.targets.flags import host_cpu

    return program_key(files, {**settings.key(), "flags": flags, "host": host_cpu()})


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
                  "iree_s": 0.0, "iree_peak_memory": executable.peak_memory})  # fmt: skip
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


def _to_cache(key: str, compiled: IreeProgram, text: str) -> None:
    from mgx_mlir.targets.cache import default_cache

    store = default_cache()
    if store is None:
        return
    external = [(path, store.file_digest(path)) for path in getattr(compiled.program, "files", ())]
    manifest = {
        "signature": compiled.signature.to_json(),
        "kernels": [asdict(k) for k in compiled.kernels],
        "text": text,
        "module": compiled.executable.key,
        "external": external,
    }
    store.put_program(key, manifest, {"main": compiled.executable.key}, compiled.params)


__all__ = ["CompileSettings", "CompiledProgram", "compile", "read_model"]

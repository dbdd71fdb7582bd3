"""InferenceSession: onnxruntime's way to load and run a model, over a compiled program."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.api.files import load, save
from mgx_mlir.compiler.background_program import StandIn
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.core import forks
from mgx_mlir.core.errors import MgxError, RunError, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.integrations.onnxruntime import models, providers
from mgx_mlir.integrations.onnxruntime.binding import IOBinding
from mgx_mlir.integrations.onnxruntime.errors import (
    Fail,
    InvalidArgument,
    MissingInputs,
    loading,
    of_run,
    refuse,
)
from mgx_mlir.integrations.onnxruntime.gpu_options import GpuOptions
from mgx_mlir.integrations.onnxruntime.models import ModelMetadata
from mgx_mlir.integrations.onnxruntime.options import RunOptions, SessionOptions
from mgx_mlir.integrations.onnxruntime.profiling import Profile
from mgx_mlir.integrations.onnxruntime.programs import Programs, Settings
from mgx_mlir.integrations.onnxruntime.types import NodeArg
from mgx_mlir.integrations.onnxruntime.values import OrtValue

Callback = Callable[[list[Any], Any, str], None]


@dataclass(frozen=True)
class OrtMemoryInfo:
    """Memory of an input or output: the host's."""

    name: str = "Cpu"
    allocator_type: int = 0
    device_id: int = 0
    mem_type: int = 0
    device_mem_type: int = 0
    device_vendor_id: int = 0


class Session:
    """Session base class: facts of its model and its providers, and runs."""

    _model_path: str | None
    _options: SessionOptions
    _chosen: providers.Chosen
    _programs: Programs

    def get_session_options(self) -> SessionOptions:
        """Return the options of the session."""
        return self._options

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that a run must supply."""
        return list(self._programs.model.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs in order."""
        return list(self._programs.model.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that a run may replace by inputs."""
        return list(self._programs.model.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the model's file."""
        return self._programs.model.metadata

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory of each input: the host's."""
        return [OrtMemoryInfo() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory of each output: the host's."""
        return [OrtMemoryInfo() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> list[None]:
        """Return None for each input: there are no devices of plugin providers."""
        return [None for _ in self.get_inputs()]

    def get_providers(self) -> list[str]:
        """Return the providers in order of precedence."""
        return self._chosen.names

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of each provider."""
        return {n: dict(o) for n, o in self._chosen.options.items()}

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """Return nothing: the whole model runs on the first provider."""
        return []

    def get_tuning_results(self) -> list[Any]:
        """Return nothing: results of tuning are in the tuning file."""
        return []

    def set_tuning_results(self, results: Any, *, error_on_invalid: bool = False) -> None:
        """Do nothing: results of tuning are in the tuning file."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Do nothing: no option of a provider changes between runs."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Do nothing: graphs are not captured."""

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, *_: Any, **__: Any
    ) -> OrtValue:
        """Return a value of zeros in the host's memory."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type)


class InferenceSession(Session):
    """A model that is ready to run: a path, or the bytes of an ONNX file.

    A path that ends in .mxr is a compiled program's. `providers` are names in order, or tuples of a
    name and options. CPUExecutionProvider compiles for the CPU, MIGraphXExecutionProvider and
    ROCMExecutionProvider for the AMD GPU. Dims that the model leaves dynamic stay dynamic. Several
    threads may run a session; it can be pickled, and used after a fork. Errors: onnxruntime's
    classes, in `capi.onnxruntime_pybind11_state`.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(f"expected a path or bytes, got {type(path_or_bytes).__name__}")
        is_path = not isinstance(path_or_bytes, bytes)
        self._model_path = os.fspath(path_or_bytes) if is_path else None
        self._source = self._model_path if is_path else path_or_bytes
        self._options = SessionOptions.of(sess_options)
        self._fallback = int(kwargs.get("enable_fallback", 1)) == 1
        self._create(providers, provider_options)

    def _create(
        self, names: Sequence[Any] | None, options: Sequence[Mapping[Any, Any]] | None
    ) -> None:
        own = self._options
        if names is None and own.has_providers():
            names = own._providers
        try:
            self._chosen = providers.chosen(names, options)
        except ValueError as e:
            if not self._fallback:
                raise
            warnings.warn(f"{e}; the session runs on {providers.CPU}", stacklevel=3)
            self._chosen = providers.Chosen({providers.CPU: {}})
        profile = Profile(own.profile_file_prefix.removesuffix("_"))
        self._profile = profile if own.enable_profiling else None
        path = self._model_path
        missing = path if path is not None and not os.path.exists(path) else None
        with loading(missing), profile.event("session_initialization"):
            if path is not None and path.endswith(".mxr"):
                self._programs = _loaded(path)
                assert self._programs.main is not None
                self._programs.main.limits = own._run_limits
            else:
                self._programs = made = self._compiled()
                signature = None if made.main is None else made.main.signature
                made.model = made.model.with_shapes(signature)
            self._write_optimised(own.optimized_model_filepath)
        self._start()

    def _compiled(self) -> Programs:
        own, first = self._options, self._chosen.first
        if own._entries.get("session.load_model_format", "ONNX").upper() == "ORT":
            raise refuse("ORT format", ["convert the ONNX file"])
        assert self._source is not None
        how: dict[str, Any] = {"fast_math": own._fast_math, **own._ahead}
        if (limits := own._run_limits) is not None:
            how |= {"max_run_seconds": limits.seconds, "max_run_memory": limits.memory}
        if own.intra_op_num_threads > 0:
            how["threads"] = own.intra_op_num_threads
        model = models.read(self._source, own)
        if self._chosen.target != "gpu":
            return Programs(model, Settings("cpu", how))
        gpu = GpuOptions.of(first)
        settings = Settings("gpu", {**how, **gpu.compile}, gpu.types, gpu.table, gpu.cache_folder)
        made = Programs(model, settings, gpu.loaded(model))
        if gpu.save_path != gpu.load_path or not os.path.exists(gpu.save_path):
            gpu.keep(made.main)
        return made

    def _write_optimised(self, path: str) -> None:
        main = self._programs.main
        if not path:
            return
        if isinstance(main, StandIn):
            main = main.alone()
        if not path.endswith((".mxr", ".mlir")) or main is None:
            why = (
                "its name ends in neither .mxr nor .mlir"
                if main
                else "it depends on the input values"
            )
            warnings.warn(f"the optimised model '{path}' is not written: {why}", stacklevel=4)
        elif path.endswith(".mxr"):
            save(main, path)
        else:
            text = main.text if isinstance(main, IreeProgram) else str(main.program)
            with atomic(path) as f:
                f.write(text.encode())

    def _start(self) -> None:
        """Set the state that pickles do not hold, and cache what runs read."""
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        main = self._programs.main
        self._at = {a.name: i for i, a in enumerate(self._programs.model.outputs)}
        # program of every run; None where a run may need another one
        self._main: CompiledProgram | None = None
        if not self._programs.model.overridable and self._profile is None:
            self._main = main

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("_pool", "_main", "_profile", "_at"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._profile = None
        self._start()

    # ------------------------------------------------------------------ running

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run on arrays, or values that numpy converts, by name; return the outputs asked for, in
        order.

        No names, or None, are all outputs. Sequences are lists of arrays, maps are dicts.
        Errors: MissingInputs, a ValueError; InvalidArgument for unknown names, wrong types, ranks
        and sizes; Fail for a run that failed.
        """
        return self._into(output_names, input_feed, run_options, None)

    def _into(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        out: Mapping[str, np.ndarray] | None,
    ) -> list[Any]:
        """Run as `run` does; `out` maps names to arrays that results are written to."""
        picks = self._picks(output_names) if output_names else None
        try:
            main = self._main
            if main is None or run_options is not None:
                found = self._slow(input_feed, run_options, out)
            else:
                found = main.run(input_feed, out=out)
        except MgxError as e:
            raise self._error(e, input_feed) from e
        return found if picks is None else [found[i] for i in picks]

    def _picks(self, names: Sequence[str]) -> list[int]:
        if isinstance(names, str):
            raise TypeError(f"expected a list of names of outputs, got '{names}'")
        at = self._at
        try:
            return [at[n] for n in names]
        except KeyError as e:
            known = ", ".join(at)
            raise InvalidArgument(
                f"unknown output {e.args[0]!r}", notes=[f"the outputs are {known}"]
            ) from None

    def _slow(
        self, feed: Mapping[str, Any], options: RunOptions | None,
        out: Mapping[str, np.ndarray] | None,
    ) -> list[Any]:  # fmt: skip
        """Run with rarely used features: options, a profile, a program chosen by the feed."""
        if options is not None and options.terminate:
            raise Fail("the run's options have 'terminate' set")
        self._check_missing(feed)
        program = self._programs.for_feed(feed)
        given = dict(feed)
        if self._programs.main is None:  # an absent optional is no input of the program
            given = {n: v for n, v in given.items() if n in program.input_names or v is not None}
        if self._profile is None:
            return _run(program, given, out, options)
        kernels = len(program.kernels)
        with self._profile.event("model_run", target=program.target, kernels=kernels):
            return _run(program, given, out, options)

    def _check_missing(self, feed: Mapping[str, Any]) -> None:
        needed = [a for a in self._programs.model.inputs if not a.type.startswith("optional")]
        missing = [a.name for a in needed if a.name not in feed]
        if missing:
            got = ", ".join(map(str, feed)) or "none"
            raise MissingInputs(f"missing inputs: {', '.join(missing)}; got {got}")

    def _error(self, e: MgxError, feed: object) -> MgxError:
        if isinstance(e, MissingInputs):
            return e
        if not isinstance(feed, Mapping):
            got = type(feed).__name__
            return InvalidArgument(f"expected a mapping of arrays by input name, got {got}")
        if isinstance(e, RunError | UsageError):
            try:
                self._check_missing(feed)
            except MissingInputs as missing:
                return missing
        return of_run(e)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run on OrtValues by name; return OrtValues of the outputs asked for."""
        feed = {n: OrtValue.of(v)._value for n, v in input_dict_ort_values.items()}
        return [OrtValue(v) for v in self.run(output_names, feed, run_options)]

    def run_with_ortvaluevector(
        self, run_options: RunOptions | None, feed_names: Sequence[str],
        feeds: Sequence[OrtValue], fetch_names: Sequence[str], fetches: list[OrtValue],
        fetch_devices: object = None,
    ) -> None:  # fmt: skip
        """Run on OrtValues in the order of names; the outputs are appended to `fetches`."""
        given = dict(zip(feed_names, feeds, strict=True))
        fetches.extend(self.run_with_ort_values(fetch_names, given, run_options))

    def io_binding(self) -> IOBinding:
        """Return a binding of inputs and outputs to memory."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run on the bound inputs and outputs. Errors: BindingError, a RuntimeError."""
        iobinding.run(run_options)

    def run_async(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
        callback: Callback, user_data: Any, run_options: RunOptions | None = None,
    ) -> None:  # fmt: skip
        """Run in a thread of the session, and call `callback(results, user_data, error)` there.

        `error` is empty where the run succeeded; else there are no results. Errors of this call:
        MissingInputs.
        """
        self._check_missing(input_feed)
        feed = dict(input_feed)

        def job() -> None:
            try:
                found, error = self.run(output_names, feed, run_options), ""
            except Exception as e:  # the callback's exception
                found, error = list[Any](), str(e) or type(e).__name__
            try:
                callback(found, user_data, error)
            except Exception:  # no caller waits: reported as an uncaught exception of a thread
                traceback.print_exc()

        self._threads().submit(job)

    def _threads(self) -> ThreadPoolExecutor:
        """Return the threads of asynchronous runs; a forked child has its own."""
        pool = self._pool
        if pool is None or pool[0] != forks.count():
            made = ThreadPoolExecutor(available_cpus(), thread_name_prefix="mgx-run-async")
            pool = self._pool = (forks.count(), made)
        return pool[1]

    # ------------------------------------------------------------------ the session itself

    def set_providers(
        self, providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Compile the model again, for other providers."""
        self._create(providers, provider_options)

    def disable_fallback(self) -> None:
        """Raise errors of wrong providers from now on."""
        self._fallback = False

    def enable_fallback(self) -> None:
        """Run on the CPU where providers are wrong, with a warning."""
        self._fallback = True

    def end_profiling(self) -> str:
        """Write the session's profile, and return the file's name; "" without one."""
        profile, self._profile = self._profile, None
        self._start()
        return profile.write() if profile is not None else ""

    def get_profiling_start_time_ns(self) -> int:
        """Return when the profile began, 0 without one."""
        return self._profile.start_ns if self._profile is not None else 0


def _run(
    program: CompiledProgram,
    given: dict[str, Any],
    out: Mapping[str, np.ndarray] | None,
    options: RunOptions | None,
) -> list[Any]:
    """Run within the limits of the run, or else of the session."""
    limits = program.limits
    own = options._run_limits if options is not None else None
    if own is not None:
        limits = RunLimits(own.seconds, limits.memory if limits is not None else None)
    if limits is None or options is None:
        return program.run(given, out=out)
    return program.run_limited(given, limits, out=out, stop=lambda: options.terminate)


def _loaded(path: str) -> Programs:
    """Return the program of a compiled file."""
    found = load(path)
    program = found if isinstance(found, CompiledProgram) else found.compiled
    if not isinstance(program, CompiledProgram):
        raise InvalidArgument("the program is not compiled", location=path)
    return Programs(models.of_signature(program.signature, path), Settings(program.target), program)

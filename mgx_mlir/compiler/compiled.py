"""Compiled programs: their signature, their runs, and the loading of their code.

Loading and running needs neither IREE's compiler nor the bindings: modules that do are imported
where used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mgx_mlir.compiler.given_outputs import Places
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.core import forks
from mgx_mlir.core.errors import NamesDisagree, RunLimitError, UsageError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.known_inputs import KnownInputs
from mgx_mlir.programs.lowered import KernelInfo
from mgx_mlir.programs.signature import Signature

Self = TypeVar("Self", bound="CompiledProgram")

if TYPE_CHECKING:
    from mgx_mlir.compiler.limited_runs import LimitedRuns
    from mgx_mlir.compiler.options import CompileOptions
    from mgx_mlir.compiler.without_names import WithoutNames
    from mgx_mlir.programs.program_ir import ProgramIR
    from mgx_mlir.runtime.gpu_memory import DeviceMemory

_limiting = forks.lock()  # programs that start processes for runs with limits


@dataclass(frozen=True)
class Placement:
    """The target of a compiled program, and whether it is emulated."""

    target: str
    emulate: bool = False  # gpu programs run on the emulator


class CompiledProgram:
    """A program ready to run on a target.

    `signature` names inputs and outputs; `kernels` are the fused kernels; `stats` holds the seconds
    of each stage and the peak memory; `executable` is the backend's output. `program` is
    the program after the passes. Runs may come from many threads. `device_id` is the number of the
    GPU that it is loaded on. `graph`: each call launches one HIP or CUDA graph, on a stream of
    `stream_priority`; None: on NVIDIA's GPUs, where a program can be one. `can_mark`:
    `runtime.graphs.mark` works on the module that is loaded.
    """

    device_id = 0
    graph: bool | None = None
    stream_priority: int | None = None
    can_mark = False
    threads: int | None = None  # threads of a run on a CPU, None: by the program's size
    limits: RunLimits | None = None  # limits of each run
    _limited: LimitedRuns | None = None  # the processes of runs with limits
    # returns the results of a run on inputs like earlier ones, None for others; None where results
    # or inputs need more than that
    _quick: Callable[[dict[str, Any]], list[Any] | None] | None = None

    def __init__(
        self,
        placement: Placement,
        signature: Signature,
        kernels: Sequence[KernelInfo],
        stats: CompileStats,
    ) -> None:
        self.placement, self.signature = placement, signature
        self.kernels, self.stats = list(kernels), stats
        self._known, self._plain = KnownInputs(signature), signature.gives_plain_arrays
        self.without_names: WithoutNames | None = None

    def run_by(self, options: CompileOptions) -> None:
        """Take the options of runs, which the code does not depend on."""
        self.device_id = options.device_id
        self.graph, self.stream_priority = options.graph, options.stream_priority
        self.limits = RunLimits.of(options.max_run_seconds, options.max_run_memory)

    @property
    def target(self) -> str:
        """The target's name."""
        return self.placement.target

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return self.signature.input_names

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return self.signature.output_names

    @property
    def _is_static(self) -> bool:
        """Return whether all inputs and results have known sizes."""
        return all(p.is_static for p in (*self.signature.inputs, *self.signature.outputs))

    @property
    def thread_count(self) -> int:
        """The CPU threads of a run."""
        return self.threads or available_cpus()

    @property
    def program(self) -> ProgramIR:
        """The program after the passes, with its kernels."""
        raise NotImplementedError

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *args: object,
        out: Any = None,
        max_run_seconds: float | None = None,
        **named: object,
    ) -> list[Any]:
        """Run on numpy arrays by input name, or in order; the outputs in order.

        `out` are arrays that the results are written to, in order or by name; they are returned.
        For None in `out` the result gets a new array. With `max_run_seconds` the run is in another
        process, which is ended at the limit (RunLimitError). An input that is called
        `out` or `max_run_seconds` is given in a mapping. A cache that is an input and, with new
        rows, a result (`signature.in_place`) is updated in place if `out` has the same array for
        it. A failed run may have written its rows.

        A list of arrays is the inputs in order, unless an input is a sequence. An input or output
        that is a sequence in the model is a list of arrays. Everything about the inputs is checked
        before anything runs. Where they give one name of a dim two sizes, the model is compiled
        once more, without that name. Raises RunError.
        """
        quick = self._quick
        alone = out is max_run_seconds is self.limits is None and not (args or named)
        if quick is not None and alone and type(inputs) is dict:
            found = quick(inputs)
            if found is not None:
                return found
        places = None if out is None else Places(self.signature, out)
        given = inputs
        if type(given) is not dict or args or named:
            given = self._named(inputs, args, named)
        limits = self.limits
        if max_run_seconds is not None:
            limits = RunLimits.of(max_run_seconds, limits and limits.memory)
        if limits is not None:
            return self.run_limited(given, limits, out=out)
        call, numbers = None, given
        if self.signature.takes_texts:
            numbers, call = self.signature.numbered(given)
        found = self.run_known(numbers) if places is None else self._known_into(numbers, places)
        if found is not None:
            return found if self._plain else self.signature.stated(found, call)
        if self.without_names is not None and places is None:
            # these shapes came before, and need the program without names
            found = self.without_names.run_like_earlier(given)
            if found is not None:
                return found
        try:
            arrays = self.check_inputs(numbers)
        except NamesDisagree as e:
            if self.without_names is None:
                raise
            return self.without_names.program(e).run(given, out=out)
        if places is None:
            return self.signature.stated(self.execute(arrays), call)
        return self._into(arrays, places)

    __call__ = run

    def run_limited(
        self,
        given: Mapping[str, Any],
        limits: RunLimits,
        *,
        out: Any = None,
        stop: Callable[[], bool] | None = None,
    ) -> list[Any]:
        """Run as `run` does, within limits; setting `stop` ends the run.

        Raises RunLimitError at a limit or stop.
        """
        places = None if out is None else Places(self.signature, out)
        call, numbers = None, given
        if self.signature.takes_texts:
            numbers, call = self.signature.numbered(given)
        try:
            arrays = self.check_inputs(numbers)
        except NamesDisagree as e:
            if self.without_names is None:
                raise
            other = self.without_names.program(e)
            return other.run_limited(given, limits, out=out, stop=stop)
        found = self._execute_limited(arrays, limits, stop)
        return self.signature.stated(found, call) if places is None else places.filled(found)

    def _execute_limited(
        self, arrays: Sequence[np.ndarray], limits: RunLimits,
        stop: Callable[[], bool] | None = None,
    ) -> list[np.ndarray]:  # fmt: skip
        """Run on checked arrays in another process."""
        if limits.memory is not None and self.least_bytes(arrays) > limits.memory:
            raise RunLimitError(f"the run needs more than {limits.memory} bytes (max_run_memory)")
        # start-up: few runs have limits
        from mgx_mlir.compiler.limited_runs import LimitedRuns
        from mgx_mlir.runtime.workers import WorkersLost

        with _limiting:
            runs = self._limited
            if runs is None or runs.is_lost or runs.memory != limits.memory:
                runs = self._limited = LimitedRuns(self, limits.memory)
        try:
            return runs.run(arrays, limits.seconds, stop)
        except WorkersLost:
            with _limiting:
                runs = self._limited = LimitedRuns(self, limits.memory)
            return runs.run(arrays, limits.seconds, stop)

    def least_bytes(self, arrays: Sequence[np.ndarray]) -> int:
        """Return a lower bound of the bytes of a run, without the weights."""
        return sum(a.nbytes for a in arrays)

    def run_like_earlier(self, given: dict[str, Any]) -> list[Any] | None:
        """Run on inputs of the same types and shapes as earlier ones; None where they need
        checks.
        """
        call, numbers = None, given
        if self.signature.takes_texts:
            numbers, call = self.signature.numbered(given)
        found = self.run_known(numbers)
        if found is None:
            return None
        return found if self._plain else self.signature.stated(found, call)

    def _named(
        self, inputs: Any, args: tuple[object, ...], named: dict[str, object]
    ) -> dict[str, Any]:
        """Return the arguments of a call of `run` by the names of inputs."""
        if args or (inputs is not None and not isinstance(inputs, Mapping)):
            values = [inputs, *args]
            if not args and isinstance(inputs, list | tuple) and self._are_several(inputs):
                values = list(inputs)
            names = self.input_names
            if len(values) > len(names):
                raise UsageError(f"expected {len(names)} inputs, got {len(values)}")
            inputs = dict(zip(names, values, strict=False))
        return {**(inputs or {}), **named}

    def _known_into(self, given: dict[str, Any], places: Places) -> list[np.ndarray] | None:
        """Run on inputs of the same types and shapes as earlier ones; None where they need
        checks.
        """
        known = self._known.arrays(given)
        return None if known is None else self._into(known[0], places)

    def _into(self, arrays: Sequence[np.ndarray], places: Places) -> list[np.ndarray]:
        """Run on checked arrays; the results are written to the caller's arrays."""
        caches = places.caches(arrays, self.signature.in_place) if self.signature.in_place else {}
        found = self.execute_in_place(arrays, caches) if caches else self.execute(arrays)
        return places.filled(found)

    def _are_several(self, given: Sequence[Any]) -> bool:
        """Return whether a list holds several inputs, not the elements of the first."""
        arrays = all(isinstance(x, np.ndarray) for x in given)
        return bool(given) and arrays and not self.signature.input_groups

    def check_inputs(self, given: Mapping[str, object]) -> list[np.ndarray]:
        """Return the inputs in order, as checked arrays. RunError lists all problems."""
        arrays = self.signature.check_inputs(given)
        self._known.remember(arrays)
        return arrays

    def run_known(self, given: dict[str, Any]) -> list[np.ndarray] | None:
        """Run on inputs of the same types and shapes as earlier ones; None where they need checks.

        The results are those of the code: sequences are not grouped, declared shapes not applied.
        """
        known = self._known.arrays(given)
        return None if known is None else self.execute(known[0])

    def execute(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on checked arrays in order of the inputs."""
        raise NotImplementedError

    def execute_in_place(
        self, arrays: Sequence[np.ndarray], caches: Mapping[int, np.ndarray]
    ) -> list[np.ndarray]:
        """Run as `execute` does; `caches` has, by a result's number, the input's memory that it
        is written to (`signature.in_place`).
        """
        raise NotImplementedError

    def memory(self) -> DeviceMemory:
        """Return bytes of GPU memory: the device's, free ones, and those of this process's tensors.

        Loads the program first. Errors: UsageError for a program of another target; RunError.
        """
        raise UsageError("only a gpu program for one architecture reports its device's memory")

    def close(self) -> None:
        """Free the code, the weights and the device's memory; the program cannot run afterwards."""
        if self._limited is not None:
            self._limited.close()
            self._limited = None

    def __repr__(self) -> str:
        ports = self.signature.inputs, self.signature.outputs
        taken, given = (", ".join(f"{p.name} {p}" for p in row) for row in ports)
        return f"<compiled for {self.target}: {taken} -> {given}>"

    def _repr_html_(self) -> str:
        from mgx_mlir.printers.html import compiled_html  # for notebooks alone

        ports = self.signature.inputs, self.signature.outputs
        return compiled_html(self.target, *ports, getattr(self, "kernels", ()))

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

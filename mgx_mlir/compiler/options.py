"""The options of a compile, their checks, and their part in the cache key.

A search sets two more: `tuning` and `matmuls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.compiler.compiled import Placement
from mgx_mlir.compiler.environment import code_variables, left_out_rewrites
from mgx_mlir.compiler.option_text import option_text
from mgx_mlir.compiler.recording import check_graph
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.compiler.tuning.solutions import Tuning
from mgx_mlir.core.errors import UsageError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.rewrite_trace import disabled_names
from mgx_mlir.rewrite.switches import switches
from mgx_mlir.targets.devices import default_target

if TYPE_CHECKING:
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import GemmConfig, GemmShape

# options that do not change the compiled code
_NOT_OF_CODE = (
    "cache", "timeout", "emulate", "threads", "exhaustive_tune", "tuning_inputs", "ref_double",
    "device_id", "graph", "hip_graph", "stream_priority", "max_run_seconds", "max_run_memory",
    "background", "sizes",
)  # fmt: skip
FEW_THREADS = 4  # kernels of one image have eight workgroups or more: two for each thread
# no keywords of `compile`
_SEARCHED = ("importer", "tuning", "matmuls", "trusts_values")


@dataclass(frozen=True)
class CompileOptions:
    """Choose the target of a compile, its code, and how the program runs.

    Errors: UsageError, which names each wrong option.
    """

    target: str = field(default_factory=default_target)
    """"ref", "cpu" or "gpu"; by default gpu where a GPU is found, else cpu."""

    arch: str | Sequence[str] | None = None
    """An architecture or card for gpu (gfx942, mi300x, sm_90, h100), the name of a CPU for cpu.
    Of several, as "gfx942,sm_90" or a list, the one that fits the device runs."""

    fast_math: bool = True
    """Rewrites may change rounding."""

    row_bits: int = 16
    """Bits of each number of many rows that matmuls with 4-bit weights multiply by bytes: 16, or 8
    in less time and with less accuracy. With 8, attention in f32 rounds to bf16."""

    remove_qdq_pairs: bool = False
    """Leave out the rounding of a value that is quantised and dequantised again, where no matmul
    takes it in 8 bits, as MIGraphX does."""

    disable: Sequence[str] = ()
    """Names of passes to leave out."""

    kernel_boundaries: bool = True
    """Our fusion decides what is one kernel; off, IREE's does."""

    cache: bool = True
    """Look the program up in the caches, and keep it there."""

    timeout: float | None = None
    """Limit of IREE's compile in seconds. By default it is 600, and 6 more for each kernel. On
    expiry IREE compiles once more within the same limit, with kernels of its own choice."""

    threads: int | None = None
    """CPU threads of a run; by default all, or one for a small program."""

    ref_double: bool = False
    """Let `ref` compute in f64."""

    exhaustive_tune: bool = False
    """Compile in several ways, time them, and keep the fastest in the tuning file, from which later
    compiles take it. On gpu each matmul first, by the bound of its code where there is no
    device."""

    tuning_inputs: Callable[[Signature], Sequence[np.ndarray]] | None = None
    """Make the inputs that a search times runs on."""

    emulate: bool = False
    """Run a gpu program on the emulator of AMD GPUs."""

    device_id: int = 0
    """Number of the GPU that the program runs on."""

    graph: bool | None = None
    """Make each run of a gpu program one launch of a HIP or CUDA graph, which the first run at the
    dims of its inputs records. None: on NVIDIA's GPUs, where a program reads no values on the
    host."""

    hip_graph: bool = False
    """The same as `graph`, by its older name."""

    stream_priority: int | None = None
    """Priority of the stream of a HIP or CUDA graph."""

    max_run_seconds: float | None = None
    """Limit of each run in seconds: a run is in a process of its own, which ends there
    (RunLimitError)."""

    max_run_memory: int | None = None
    """Limit of each run in bytes beside the weights; the run's process ends there
    (RunLimitError)."""

    background: bool = False
    """Return before the program is compiled: the reference, or a larger one of `sizes`, answers
    calls until it is there. Where the compile fails, the next call raises its error."""

    sizes: Sequence[int] | Mapping[str, Sequence[int]] = ()
    """Sizes of a dynamic dim, compiled side by side, each as a program of fixed size. A mapping
    from its name says which dim. Calls of other sizes run the next larger one on padded inputs,
    where the rows of the program are proved to be independent."""

    importer: Mapping[str, Any] = field(default_factory=dict)
    """Options of `parse_onnx`, or the fields of TfOptions."""

    tuning: Tuning = field(default_factory=Tuning)
    """Solution that a search found for the program."""

    matmuls: tuple[tuple[GemmShape, GemmConfig], ...] = ()
    """Solutions that searches found for matmuls that the program may have."""

    trusts_values: bool = False
    """Functions that update caches in place do not check values of inputs: the caller guarantees
    them. A check reads a value on the host, and its call cannot be a graph."""

    def __post_init__(self) -> None:
        """Check the options. Raise UsageError, which names all wrong ones."""
        wrong = list(self._wrong())
        if wrong:
            (first, notes), *more = wrong
            text = "; ".join([first, *(message for message, _ in more)])
            raise UsageError(text, notes=[*notes, *(n for _, given in more for n in given)])
        object.__setattr__(self, "disable", tuple(self.disable))
        if not isinstance(self.sizes, Mapping):
            object.__setattr__(self, "sizes", tuple(self.sizes))
        graph = self.graph or self.hip_graph
        object.__setattr__(self, "graph", graph or self.graph)
        object.__setattr__(self, "hip_graph", bool(graph))

    def _wrong(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield an error for each wrong option, with notes."""
        yield from _wrong_passes(self.disable)
        yield from _wrong_sizes(self.sizes)
        if self.threads is not None and not isinstance(self.threads, int | np.integer):
            yield f"threads expected an integer, got {self.threads!r}", ()
        if self.row_bits not in (8, 16):
            yield f"row_bits expected 8 or 16, got {self.row_bits!r}", ()
        if self.timeout is not None and not (isinstance(self.timeout, Real) and self.timeout >= 0):
            yield f"timeout expected seconds, got {self.timeout!r}", ()
        for name, (default, targets) in _FOR_TARGETS.items():
            if getattr(self, name) != default and self.target in _KNOWN - targets:
                yield f"{name} is for {_listed(targets)}, the target is {self.target}", ()
        if self.target == "cpu" and not isinstance(self.arch, str | None):
            yield f"arch expected the name of one CPU, got {self.arch!r}", ()
        if self.tuning_inputs is not None and not self.exhaustive_tune:
            yield "tuning_inputs needs exhaustive_tune=True: without it nothing is timed", ()
        try:
            check_graph(self.target, self.graph or self.hip_graph, self.stream_priority)
        except UsageError as e:
            yield e.message, e.notes
        try:
            RunLimits.of(self.max_run_seconds, self.max_run_memory)
        except UsageError as e:
            yield e.message, e.notes

    @staticmethod
    def of(
        target: str | None, options: CompileOptions | None, keywords: Mapping[str, Any]
    ) -> CompileOptions:
        """Return options that `keywords` override; these include the importer's.

        target: overrides that of `options` unless it is None. Errors: UsageError.
        """
        given = {k: v for k, v in keywords.items() if k in KEYWORDS}
        importer = {k: v for k, v in keywords.items() if k not in KEYWORDS}
        if importer:
            given["importer"] = {**(options.importer if options else {}), **importer}
        if target is not None:
            given["target"] = target
        return CompileOptions(**given) if options is None else replace(options, **given)

    def for_ref(self) -> CompileOptions:
        """Return the options of the reference program that answers while this one compiles."""
        return CompileOptions(
            "ref", importer=self.importer, disable=self.disable,
            max_run_seconds=self.max_run_seconds, max_run_memory=self.max_run_memory,
        )  # fmt: skip

    @property
    def one_arch(self) -> str | None:
        """The one architecture or CPU that the code is for; None: the target's default."""
        assert isinstance(self.arch, str | None), "expected one arch: each is compiled alone"
        return self.arch

    @property
    def run_threads(self) -> int | None:
        """The CPU threads of a run, None: all."""
        return self.threads or self.tuning.threads

    @property
    def few_threads(self) -> bool:
        """A run has so few CPU threads that the kernels of one image occupy them."""
        return (self.run_threads or available_cpus()) <= FEW_THREADS

    @property
    def boundaries(self) -> bool:
        """Our fusion decides each kernel; neither the caller nor a search left it to IREE."""
        return self.kernel_boundaries and self.tuning.boundaries

    @property
    def placement(self) -> Placement:
        """The target that the compiled program runs on, and whether it is emulated."""
        return Placement(self.target, self.emulate)

    def key(self) -> dict[str, Any]:
        """Return the options as JSON values, for the cache.

        Errors: TypeError where an option cannot be written as text.
        """
        row = asdict(replace(self, tuning_inputs=None))
        for name in _NOT_OF_CODE:
            row.pop(name)
        row["importer"] = {k: option_text(v) for k, v in sorted(self.importer.items())}
        # the key has the contents of external data, not their folder
        row["importer"].pop("external_data_path", None)
        row["disable"] = [*self.disable, *sorted(switches().disable)]
        row["disabled_rewrites"] = sorted({*disabled_names(), *left_out_rewrites()})
        row["environment"] = code_variables()
        row["few_threads"] = self.target == "cpu" and self.few_threads
        return row


KEYWORDS = tuple(f.name for f in fields(CompileOptions) if f.name not in ("target", *_SEARCHED))
# the default of an option, and the targets that have it
_KNOWN = frozenset({"ref", "cpu", "gpu"})
_FOR_TARGETS: dict[str, tuple[Any, frozenset[str]]] = {
    "arch": (None, frozenset({"cpu", "gpu"})),
    "row_bits": (16, frozenset({"cpu"})),
    "exhaustive_tune": (False, frozenset({"cpu", "gpu"})),
    "ref_double": (False, frozenset({"ref"})),
    "emulate": (False, frozenset({"gpu"})),
    "device_id": (0, frozenset({"gpu"})),
    "background": (False, frozenset({"cpu", "gpu"})),
    "sizes": ((), frozenset({"cpu", "gpu"})),
}


def _listed(targets: frozenset[str]) -> str:
    return " and ".join(sorted(targets))


def _wrong_sizes(given: object) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield errors for lists that do not hold sizes."""
    for sizes in given.values() if isinstance(given, Mapping) else [given]:
        listed: list[Any] = []
        wrong = isinstance(sizes, str) or not isinstance(sizes, Sequence)
        if isinstance(sizes, Sequence):
            listed = [*sizes]
        numbers = all(isinstance(n, int | np.integer) and n > 0 for n in listed)
        empty = isinstance(given, Mapping) and not listed
        if wrong or empty or not numbers or len(set(listed)) < len(listed):
            yield f"sizes expected different sizes of 1 or more, got {sizes!r}", ()


def _wrong_passes(disable: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield errors for names that no pass has."""
    if isinstance(disable, str):
        yield f"disable expected a list of passes, got '{disable}'", ()
        return
    if not disable:
        return
    # start-up: the passes are a quarter of the package
    from mgx_mlir.passes import PASSES
    from mgx_mlir.rewrite.passes import is_upstream, pass_name, pipeline_name
    from mgx_mlir.rewrite.pipeline import did_you_mean

    for name in disable:
        if pass_name(name) not in PASSES and not is_upstream(name):
            known = [*PASSES, *map(pipeline_name, PASSES)]
            yield (
                f"disable: unknown pass '{name}'",
                did_you_mean(name, known, listed_by="mgx-opt --list-passes"),
            )

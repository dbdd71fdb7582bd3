"""What a compile depends on besides the program, and which of it is in the cache's key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from mgx_mlir.compiler.compiled import Placement
from mgx_mlir.compiler.environment import code_variables, left_out_rewrites
from mgx_mlir.compiler.option_text import option_text
from mgx_mlir.compiler.tuning.solutions import Tuning
from mgx_mlir.passes.lowering.gpu.products.gemm_shape import GemmConfig, GemmShape
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.rewrite_trace import disabled_names
from mgx_mlir.rewrite.switches import switches

# settings that change nothing of the code that a compile makes
_NOT_OF_CODE = ("cache", "timeout", "emulate", "threads", "exhaustive_tune", "tuning_inputs")


@dataclass(frozen=True)
class CompileSettings:
    """What a compile depends on besides the program.

    fast_math: rewrites that change rounding. remove_qdq_pairs: no rounding where a value is
    quantised and dequantised again. disable: passes to leave out. kernel_boundaries: off
    leaves fusion to IREE. cache: look up and keep results. timeout: seconds of the backend.
    tuning, products: what searches found, for the program and for products that it may have.
    emulate: a gpu program runs on the emulator. threads: CPU threads of a run, None: as tuned or
    all. exhaustive_tune, tuning_inputs: search, timing runs on these inputs.
    """

    target: str = "cpu"
    arch: str | None = None
    fast_math: bool = True
    disable: tuple[str, ...] = ()
    kernel_boundaries: bool = True
    cache: bool = True
    timeout: float | None = None
    onnx: Mapping[str, Any] = field(default_factory=dict)
    tuning: Tuning = field(default_factory=Tuning)
    products: tuple[tuple[GemmShape, GemmConfig], ...] = ()
    emulate: bool = False
    threads: int | None = None
    remove_qdq_pairs: bool = False
    exhaustive_tune: bool = False
    tuning_inputs: Callable[[Signature], Sequence[np.ndarray]] | None = None

    @property
    def run_threads(self) -> int | None:
        """The CPU threads of a run, None: all."""
        return self.threads or self.tuning.threads

    @property
    def boundaries(self) -> bool:
        """Whether each kernel is ours."""
        return self.kernel_boundaries and self.tuning.boundaries

    def key(self) -> dict[str, Any]:
        """Return the options as JSON values, for the cache.

        Errors: TypeError where an option cannot be written as text.
        """
        row = asdict(replace(self, tuning_inputs=None))
        for name in _NOT_OF_CODE:
            row.pop(name)
        row["onnx"] = {k: option_text(v) for k, v in sorted(self.onnx.items())}
        row["onnx"].pop("external_data_path", None)  # what is read there counts, not where it is
        row["disable"] = [*self.disable, *sorted(switches().disable)]
        row["disabled_rewrites"] = sorted({*disabled_names(), *left_out_rewrites()})
        row["environment"] = code_variables()
        return row

    @property
    def placement(self) -> Placement:
        """Where the compiled program runs."""
        return Placement(self.target, self.emulate)

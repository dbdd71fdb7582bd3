"""Options of reading a model, shared by ONNX and TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mgx_mlir.core.errors import ModelError, UsageError
from mgx_mlir.frontends.dims import Dim, DynamicDim


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading a model of any format.

    `map_input_dims` and `map_dyn_input_dims` give the dims of whole inputs, `default_dyn_dim_value`
    the range of dims that the file leaves dynamic. `skip_unknown_operators` imports unknown
    operators as `migraphx.unknown`. `print_program_on_error` prints what was built to stderr.
    `use_debug_symbols` lets printers show the names of source nodes.
    """

    default_dyn_dim_value: DynamicDim | None = None
    map_input_dims: Mapping[str, Sequence[int]] = field(default_factory=dict)
    map_dyn_input_dims: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    skip_unknown_operators: bool = False
    print_program_on_error: bool = False
    use_debug_symbols: bool = False

    def __post_init__(self) -> None:
        both = set(self.map_input_dims) & set(self.map_dyn_input_dims)
        if both:
            name = min(both)
            raise UsageError(f"input '{name}' is in both map_input_dims and map_dyn_input_dims")

    def given_dims(self, name: str, rank: int | None) -> list[Dim] | None:
        """Return the dims that the user sets for an input; None if the file's apply.

        `rank` is the file's. Errors: UsageError for another number of dims, ModelError if neither
        states the dims.
        """
        given: Sequence[Dim] | None = self.map_input_dims.get(name)
        if given is None:
            given = self.map_dyn_input_dims.get(name)
        if given is None:
            if rank is None:
                raise ModelError(f"input '{name}' has no rank", notes=["set its dims by option"])
            return None
        if rank is not None and len(given) != rank:
            raise UsageError(f"input '{name}' has {rank} dims, the option gives {len(given)}")
        for d in given:
            if not isinstance(d, int | np.integer | DynamicDim):
                raise UsageError(f"input '{name}' expected a size for each dim, got {d!r}")
        return [d.fixed if isinstance(d, DynamicDim) and d.fixed is not None else d for d in given]

    def check_inputs(self, known: Iterable[str], shown: Sequence[str], source: str) -> None:
        """Raise UsageError if dims are set for a name that is not among the `known` inputs."""
        names = set(known)
        for name in (*self.map_input_dims, *self.map_dyn_input_dims):
            if name not in names:
                raise UsageError(
                    f"dims are given for '{name}', which is no input of the model",
                    location=source,
                    notes=[f"its inputs: {', '.join(shown) or 'none'}"],
                )

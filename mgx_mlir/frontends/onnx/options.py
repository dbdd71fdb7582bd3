"""The options of reading an ONNX model, with MIGraphX's names and meanings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.frontends.options import ReadOptions


@dataclass(frozen=True)
class OnnxOptions(ReadOptions):
    """Options of reading a model.

    `default_dim_value` (0: off) is the size of every dim that the file leaves dynamic, and
    `default_dyn_dim_value` its range; without both such a dim stays dynamic. `dim_params` sets the
    size of a named symbol. Dims with a name in `loose_names` need not be equal. `input_lengths` is
    the number of elements of an input that is a sequence, None for an absent optional input. (The
    elements of `x` are named `x[0]`, `x[1]` in the maps of dims.) `input_values` makes constants of
    inputs. `external_data_path` replaces the model's folder; `external_weights_as_parameters` makes
    inputs of the floats in external data. `max_loop_iterations` and `limit_max_iterations` bound
    Loop. The others are those of ReadOptions.
    """

    default_dim_value: int = 0
    dim_params: Mapping[str, Dim] = field(default_factory=dict)
    loose_names: Sequence[str] = ()
    input_lengths: Mapping[str, int | None] = field(default_factory=dict)
    input_values: Mapping[str, Any] = field(default_factory=dict)
    max_loop_iterations: int = 10
    limit_max_iterations: int = 65535
    external_data_path: str = ""
    external_weights_as_parameters: bool = False

    def __post_init__(self) -> None:
        if self.default_dim_value and self.default_dyn_dim_value is not None:
            raise UsageError("expected one of default_dim_value and default_dyn_dim_value")
        if self.default_dim_value < 0:
            raise UsageError(f"default_dim_value is {self.default_dim_value}, expected >= 0")
        super().__post_init__()

    def dynamic_dim(self, symbol: str) -> Dim:
        """Return the dim for one that the file leaves dynamic, named or not."""
        if symbol and symbol in self.dim_params:
            given = self.dim_params[symbol]
            if isinstance(given, int):
                return given
            fixed = given.fixed
            if fixed is not None:
                return fixed
            loose = symbol in self.loose_names
            name = None if loose else given.symbol or symbol
            return DynamicDim(given.min, given.max, given.optimals, name)
        if self.default_dim_value:
            return self.default_dim_value
        if symbol in self.loose_names or not any(c.isalpha() for c in symbol):
            symbol = ""  # "?", "-1" and "_" mark a dynamic dim, but do not make such dims equal
        if (given := self.default_dyn_dim_value) is not None:
            fixed = given.fixed
            if fixed is not None:
                return fixed
            return DynamicDim(given.min, given.max, given.optimals, symbol or given.symbol)
        return DynamicDim(0, None, (), symbol or None)

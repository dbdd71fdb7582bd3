"""The options of reading an ONNX model, with MIGraphX's names and meanings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir


@dataclass(frozen=True)
class DynamicDim:
    """A dimension's range, the sizes to be fast at, and its symbol; max None is unbounded."""

    min: int = 1
    max: int | None = None
    optimals: tuple[int, ...] = ()
    symbol: str | None = None

    def __post_init__(self) -> None:
        if self.min < 0 or (self.max is not None and self.max < self.min):
            raise UsageError(f"expected a range min <= max, got [{self.min}..{self.max}]")
        for size in self.optimals:
            if size < self.min or (self.max is not None and size > self.max):
                raise UsageError(f"optimal {size} is outside [{self.min}..{self.max}]")

    @property
    def fixed(self) -> int | None:
        """The size, where the range holds only one."""
        return self.min if self.min == self.max else None

    def attribute(self) -> ir.Attribute:
        """The entry of a dynamic dim in `migraphx.dims`: {min, max?, optimals?, symbol?}."""
        i64 = ir.IntegerType.get_signless(64)
        entries: dict[str, ir.Attribute] = {"min": ir.IntegerAttr.get(i64, self.min)}
        if self.max is not None:
            entries["max"] = ir.IntegerAttr.get(i64, self.max)
        if self.optimals:
            entries["optimals"] = ir.DenseI64ArrayAttr.get(list(self.optimals))
        if self.symbol:
            entries["symbol"] = ir.StringAttr.get(self.symbol)
        return ir.DictAttr.get(entries)


Dim = int | DynamicDim


@dataclass(frozen=True)
class OnnxOptions:
    """How a model is read.

    `default_dim_value` (0: off) is the size of every dim the file leaves open,
    `default_dyn_dim_value` their range; without either such a dim stays dynamic. `map_input_dims`
    and `map_dyn_input_dims` give whole inputs, `dim_params` a named symbol. `input_lengths` is the
    number of elements of an input that is a sequence (the elements of `x` are named `x[0]`, `x[1]`
    in the maps of dims), None for an optional input that is absent. `input_values` makes constants
    of inputs. Unknown operators
    become `migraphx.unknown` with `skip_unknown_operators`. `external_data_path` replaces the
    model's folder. `print_program_on_error` prints what was built to stderr.
    `max_loop_iterations` and `limit_max_iterations` bound Loop.
    """

    default_dim_value: int = 0
    default_dyn_dim_value: DynamicDim | None = None
    map_input_dims: Mapping[str, Sequence[int]] = field(default_factory=dict)
    map_dyn_input_dims: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    dim_params: Mapping[str, Dim] = field(default_factory=dict)
    input_lengths: Mapping[str, int | None] = field(default_factory=dict)
    input_values: Mapping[str, Any] = field(default_factory=dict)
    skip_unknown_operators: bool = False
    print_program_on_error: bool = False
    max_loop_iterations: int = 10
    limit_max_iterations: int = 65535
    use_debug_symbols: bool = False
    external_data_path: str = ""

    def __post_init__(self) -> None:
        if self.default_dim_value and self.default_dyn_dim_value is not None:
            raise UsageError("expected one of default_dim_value and default_dyn_dim_value")
        if self.default_dim_value < 0:
            raise UsageError(f"default_dim_value is {self.default_dim_value}, expected >= 0")
        both = set(self.map_input_dims) & set(self.map_dyn_input_dims)
        if both:
            name = min(both)
            raise UsageError(f"input '{name}' is in both map_input_dims and map_dyn_input_dims")

    def open_dim(self, symbol: str) -> Dim:
        """What a dim that the file leaves open (named or not) becomes."""
        if symbol and symbol in self.dim_params:
            given = self.dim_params[symbol]
            if isinstance(given, int):
                return given
            fixed = given.fixed
            if fixed is not None:
                return fixed
            return DynamicDim(given.min, given.max, given.optimals, given.symbol or symbol)
        if self.default_dim_value:
            return self.default_dim_value
        if (given := self.default_dyn_dim_value) is not None:
            fixed = given.fixed
            if fixed is not None:
                return fixed
            return DynamicDim(given.min, given.max, given.optimals, symbol or given.symbol)
        return DynamicDim(0, None, (), symbol or None)

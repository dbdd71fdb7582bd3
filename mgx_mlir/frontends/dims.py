"""Dims of a model's inputs: a size, or a range with its symbol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.programs.dims import LARGEST, dim_of
from mgx_mlir.programs.signature import DimRange


@dataclass(frozen=True)
class DynamicDim:
    """Range of a dim, the sizes to optimize for, and its symbol; max None is unbounded."""

    min: int = 1
    max: int | None = None
    optimals: tuple[int, ...] = ()
    symbol: str | None = None

    def __post_init__(self) -> None:
        if self.min < 0 or (self.max is not None and self.max < self.min):
            raise UsageError(f"expected a range min <= max, got [{self.min}..{self.max}]")
        if max(self.min, self.max or 0) > LARGEST:
            raise UsageError(f"expected sizes below 2**63, got [{self.min}..{self.max}]")
        for size in self.optimals:
            if size < self.min or (self.max is not None and size > self.max):
                raise UsageError(f"optimal {size} is outside [{self.min}..{self.max}]")

    @property
    def fixed(self) -> int | None:
        """The size, if the range has only one."""
        return self.min if self.min == self.max else None

    def attribute(self) -> ir.Attribute:
        """Return the entry of a dynamic dim in `migraphx.dims`: {min, max?, optimals?, symbol?}."""
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


def model_dim(d: Any) -> Any:
    """Return a dim as the ONNX reader takes it."""
    if isinstance(d, DynamicDim):
        return d
    found = dim_of(d)
    if isinstance(found, DimRange):
        return DynamicDim(found.min, found.max, tuple(found.optimals), found.symbol)
    return found


def with_model_dims(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of OnnxOptions or TfOptions, their dims in any of the forms that parsing
    takes.
    """
    found = dict(options)
    if (one := found.get("default_dyn_dim_value")) is not None:
        d = model_dim(one)
        found["default_dyn_dim_value"] = DynamicDim(d, d) if isinstance(d, int) else d
    if params := found.get("dim_params"):
        found["dim_params"] = {k: model_dim(v) for k, v in params.items()}
    if inputs := found.get("map_dyn_input_dims"):
        found["map_dyn_input_dims"] = {k: [model_dim(d) for d in v] for k, v in inputs.items()}
    return found

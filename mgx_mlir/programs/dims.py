"""`dynamic_dimension`: the range of a dim in MIGraphX's API, and its conversions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, cast

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.programs.layout import Dim
from mgx_mlir.programs.signature import DimRange

UNBOUNDED = 2**64 - 1  # missing upper bound, as MIGraphX's largest size
LARGEST = 2**63 - 1  # size of a type's dim; upper bounds from it on bound nothing, as in .mxr files


class dynamic_dimension:
    """A range of extents: `(min, max)`, with sizes to optimize for, `optimals`."""

    def __init__(
        self, min: int = 0, max: int | None = None, optimals: Iterable[int] = (), *, sym: str = ""
    ) -> None:
        upper = min if max is None else max
        if min < 0 or upper < min:
            raise ShapeError(f"expected a range 0 <= min <= max, got [{min}..{upper}]")
        if min > LARGEST:
            raise ShapeError(f"expected a min below 2**63, got {min}")
        self.min, self.max = int(min), int(upper)
        self.optimals: set[int] = {int(x) for x in optimals}
        self.sym = sym
        for size in self.optimals:
            if not self.min <= size <= self.max:
                raise ShapeError(f"optimal {size} is outside [{self.min}..{self.max}]")

    def key_parts(self) -> tuple[object, ...]:
        """Return the fields that identify it in keys of the cache."""
        return self.min, self.max, sorted(self.optimals), self.sym

    def is_fixed(self) -> bool:
        """Return whether only one size is allowed."""
        return self.min == self.max

    def dim(self) -> Dim:
        """Return the dim as tensor types hold it."""
        if self.is_fixed():
            return self.min
        upper = None if self.max >= LARGEST else self.max
        return DimRange(self.min, upper, tuple(sorted(self.optimals)), self.sym or None)

    @staticmethod
    def of(d: Dim) -> dynamic_dimension:
        """Convert a dim of MIGraphX's API."""
        if isinstance(d, int):
            return dynamic_dimension(d, d)
        upper = UNBOUNDED if d.max is None else d.max
        return dynamic_dimension(d.min, upper, d.optimals, sym=d.symbol or "")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.is_fixed() and self.min == other
        if not isinstance(other, dynamic_dimension):
            return NotImplemented
        return (self.min, self.max, self.optimals) == (other.min, other.max, other.optimals)

    def __hash__(self) -> int:
        return hash((self.min, self.max))

    def __repr__(self) -> str:
        return str(self.dim())


def dim_of(d: object) -> Dim:
    """Return a dim from an int, a dynamic_dimension, a (min, max) pair or MIGraphX's {min, max}."""
    if isinstance(d, dynamic_dimension):
        return d.dim()
    if isinstance(d, DimRange):
        return d
    if isinstance(d, SupportsIndex):
        return int(d)
    if isinstance(d, dict):
        stated = cast("dict[str, Any]", d)
        if {"min", "max"} <= set(stated):
            return dynamic_dimension(
                stated["min"], stated["max"], stated.get("optimals") or ()
            ).dim()
    if isinstance(d, list | tuple):
        parts = cast("Sequence[Any]", d)
        if 2 <= len(parts) <= 3:
            return dynamic_dimension(*parts).dim()
    raise ShapeError(f"expected a dynamic_dimension, got {d!r}")

"""Lazy tensor expressions: pointwise ops and index-only views, until something needs a tensor.

A whole expression becomes one linalg.generic, so broadcasts, transposes and chains of pointwise ops
inside a kernel are never stored as tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType

if TYPE_CHECKING:
    from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar

# Index in the source of element (i0, i1, ...) of a view: one entry per source dim, the view's dim
# that indexes it, or None for index 0.
DimMap = tuple[int | None, ...]
Extent = int | ir.Value


@dataclass(eq=False)
class Expr:
    """Base of expressions; `type` is the original (signed) tensor type."""

    type: TensorType


@dataclass(eq=False)
class Leaf(Expr):
    """A tensor that exists: `value` has the signless type."""

    value: ir.Value


@dataclass(eq=False)
class Splat(Expr):
    """A constant all of whose elements are `number`."""

    number: float
    extents: list[Extent]


@dataclass(eq=False)
class View(Expr):
    """Elements of `source` at other indices; `make` builds it as a tensor more cheaply."""

    source: Expr
    map: DimMap
    extents: list[Extent]
    make: Callable[[], ir.Value] | None = None


@dataclass(eq=False)
class Opaque(Expr):
    """Base of expressions that only their own lowering can compute."""

    extents: list[Extent]


@dataclass(eq=False)
class Compute(Expr):
    """A pointwise op on expressions of its own dims."""

    cls: type[Op]
    attributes: dict[str, Any]
    args: Sequence[Expr]
    made: Leaf | None = field(default=None)

    def computed(self, b: ArithScalars, args: Sequence[TypedScalar]) -> TypedScalar:
        """Build the op on scalars or vectors of its operands, in the types they are computed in."""
        if self.cls.discontinuous:
            args = [b.exact(v, a.type.dtype) for v, a in zip(args, self.args, strict=True)]
        scalar: Callable[..., TypedScalar] = getattr(self.cls, "scalar")  # noqa: B009
        return scalar(b, *args, **self.attributes)


def compose(outer: DimMap, inner: DimMap) -> DimMap:
    """Compose the maps of a view, `inner` source from middle, `outer` middle from result."""
    return tuple(None if i is None else outer[i] for i in inner)


def identity(rank: int) -> DimMap:
    """Return the map that reads each dim from itself."""
    return tuple(range(rank))


def behind_views(x: Expr) -> tuple[Expr, DimMap]:
    """Return the source of a view, and for each dim of the source the dim of the view that
    indexes it.
    """
    at = identity(x.type.rank)
    while isinstance(x, View):
        x, at = x.source, compose(at, x.map)
    return x, at


def broadcast_map(source: TensorType, result: TensorType) -> DimMap:
    """Right-aligned broadcasting: extents of 1 that grow are read at index 0."""
    shift = result.rank - source.rank
    return tuple(
        None if d == 1 and result.dims[i + shift] != 1 else i + shift
        for i, d in enumerate(source.dims)
    )

"""Reads of one element of an expression from the tensors behind it."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Compute, Expr, Extent, Leaf, Splat, View
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed, constant, widen


def element(e: LoweringContext, x: Expr, at: Sequence[Extent]) -> TypedScalar:
    """Return the element at an index, in its computed type.

    Views are not materialised, as on GPUs a lane would keep the whole tensor in scratch memory.
    """
    if isinstance(x, Compute) and x.made is not None:
        x = x.made
    if isinstance(x, Splat):
        return constant(x.number, computed(x.type.dtype))
    if isinstance(x, Leaf):
        found = index.read(x.value, [e.index(i) for i in at])
        return widen(TypedScalar(found, x.type.dtype))
    if isinstance(x, View):
        return element(e, x.source, [0 if i is None else at[i] for i in x.map])
    assert isinstance(x, Compute)
    return e.scalar_of(x, [element(e, a, at) for a in x.args])


__all__ = ["element"]

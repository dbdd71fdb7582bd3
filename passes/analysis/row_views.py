"""Reshapes that rewrites put around ops: to rows of a matrix, and back."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType, product
from mgx_mlir.rewrite.pattern import Rewriter


def is_solvable(t: TensorType) -> bool:
    """Return whether a reshape can state these dims: at most one is dynamic, none is 0."""
    return t.dims.count(DYN) <= 1 and 0 not in t.dims


def rows_of(dims: Sequence[int]) -> int:
    """Return the product of dims, DYN if dynamic."""
    return DYN if DYN in dims else product(dims)


def reshaped(rw: Rewriter, v: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Build a reshape to dims of which one at most is DYN."""
    return rw.op("reshape", v, dims=[-1 if d == DYN else d for d in dims])

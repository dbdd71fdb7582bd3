"""Channels-last images: their permutations, and the transposes of them."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.rewrite.pattern import Rewriter


def to_last(rank: int) -> list[int]:
    """Return the permutation N,C,s.. -> N,s..,C."""
    return [0, *range(2, rank), 1]


def to_first(rank: int) -> list[int]:
    """Return the permutation N,s..,C -> N,C,s..."""
    return [0, rank - 1, *range(1, rank - 1)]


def from_last(rw: Rewriter, v: ir.Value) -> ir.Value | None:
    """Return the channels-last value that `v` is the N,C,s.. transpose of."""
    t = rw.defining(v, Transpose)
    if t is None or TensorType.of(v).rank < 3:
        return None
    return t.input if list(t.permutation) == to_first(TensorType.of(v).rank) else None

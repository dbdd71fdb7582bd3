"""rewrite_topk: a long topk in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.normalize import TopK
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

_ROOM = 4  # the groups keep at most one element out of this number


@pattern(TopK)
def find_large_topk(op: TopK, rw: Rewriter) -> Replacement:
    """topk(x) -> topk(the topk of each group of x, their indices)

    Of equal elements the first group's come first, as before: the result is the same.
    """
    t = TensorType.of(op.input)
    axis: int = op.axis % t.rank
    n, k = t.dims[axis], op.k
    if not t.is_known or 0 in t.dims:
        return no_match("{} has dims that are dynamic or 0", t)
    if op.count is not None:
        return no_match("k is dynamic")
    if n < rw.options.split_size or not k:
        return no_match("{} elements are fewer than split-size {}", n, rw.options.split_size)
    groups = _groups(n, k, rw.options.groups)
    if groups is None:
        return no_match("no group count up to {} divides {} and leaves few enough of {}",
                        rw.options.groups, n, k)  # fmt: skip
    split = [*t.dims[:axis], groups, n // groups, *t.dims[axis + 1 :]]
    places = op.indices
    if places is None:
        count = rw.literal(np.arange(n, dtype=np.int64))
        places = rw.op("broadcast", count, axis=axis, out_lens=list(t.dims))
    best = rw.op(
        "topk", *(_reshape(rw, v, split) for v in (op.input, places)),
        k=k, axis=axis + 1, largest=op.largest,
    )  # fmt: skip
    left = [*t.dims[:axis], groups * k, *t.dims[axis + 1 :]]
    survivors = [_reshape(rw, v, left) for v in best]
    return list(rw.op("topk", *survivors, k=k, axis=axis, largest=op.largest))


def _groups(n: int, k: int, most: int) -> int | None:
    """Return the largest number of equal groups whose `k` best are few compared with `n`."""
    for groups in range(min(most, n // (_ROOM * k)), 1, -1):
        if n % groups == 0:
            return groups
    return None


def _reshape(rw: Rewriter, v: ir.Value, dims: list[int]) -> ir.Value:
    return rw.op("reshape", v, dims=dims)


@dataclass(frozen=True)
class RewriteTopk(PatternPass):
    """Split a long topk into parallel groups, and one topk of their results."""

    name: ClassVar[str] = "rewrite_topk"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_large_topk,)
    split_size: int = option(8192, "extents from this on are split")
    groups: int = option(64, "most groups")

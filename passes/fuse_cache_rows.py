"""fuse_cache_rows: an update of a cache computes the new rows that it writes."""

from __future__ import annotations

from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.attention import ConcatPastPresent
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Mul
from mgx_mlir.dialects.migraphx.pointwise_unary import Neg
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    Pattern,
    Replacement,
    Rewriter,
    has_one_use,
    no_match,
    pattern,
)

_SWAPPED = (0, 2, 1, 3)  # heads and rows
_LAST = 3  # axis of the elements of a head


@pattern(ConcatPastPresent)
def find_turned_rows(op: ConcatPastPresent, rw: Rewriter) -> Replacement:
    """concat_past_present(x * cos + concat(-x_high, x_low) * sin, ..) -> the same of x, cos, sin

    RoPE of new keys: x_low and x_high are the halves of a head. cos and sin are the same for all
    heads.
    """
    if not rw.options.turned:
        return no_match("the target turns rows in a kernel of their own")
    if op.cos is not None or op.rows_first:
        return no_match("its rows are turned, or rows come first")
    total = rw.defining(op.input, Add)
    if total is None or not has_one_use(op.input):
        return no_match("its rows are no sum, or are read elsewhere")
    dims = TensorType.of(op.input).dims
    for straight, crossed in ((total.a, total.b), (total.b, total.a)):
        for x, cos in _factors(straight, rw):
            for turned, sin in _factors(crossed, rw):
                angles = [a for a in (_angles(v, dims) for v in (cos, sin)) if a is not None]
                if len(angles) == 2 and _is_of_halves(turned, x, rw):
                    rw.merge_location(total)
                    return rw.op(
                        "concat_past_present", x, op.seqlens_k, op.past, op.rows, *angles,
                        kv_num_heads=op.kv_num_heads,
                    )  # fmt: skip
    return no_match("its rows are not turned by angles that all heads share")


@pattern(ConcatPastPresent)
def find_rows_first(op: ConcatPastPresent, rw: Rewriter) -> Replacement:
    """concat_past_present(transpose(x), ..) -> concat_past_present(x, ..) {rows_first}

    The transpose swaps heads and rows. It would be a copy. A slice behind it, such as keys beside
    queries, becomes one of x.
    """
    source, ranges = _box(op.input, rw)
    swap = rw.defining(source, Transpose)
    if op.rows_first or swap is None or tuple(swap.permutation) != _SWAPPED:
        return no_match("its rows are not those of a transpose of heads and rows")
    x = swap.input
    if ranges:
        starts, ends = zip(*ranges.values(), strict=True)
        x = rw.op("slice", x, axes=[_SWAPPED[i] for i in ranges], starts=starts, ends=ends)
    return rw.op(
        "concat_past_present", x, op.seqlens_k, op.past, op.rows, op.cos, op.sin,
        kv_num_heads=op.kv_num_heads, rows_first=True,
    )  # fmt: skip


def _factors(v: ir.Value, rw: Rewriter) -> list[tuple[ir.Value, ir.Value]]:
    """Return the factors of a product in both orders."""
    found = rw.defining(v, Mul)
    return [] if found is None else [(found.a, found.b), (found.b, found.a)]


def _angles(v: ir.Value, dims: tuple[int, ...]) -> ir.Value | None:
    """Return angles {batch, 1, rows, size} that are broadcast to all heads; None for others."""
    while not isinstance(v.owner, ir.Block) and isinstance(v.owner.opview, Multibroadcast):
        v = v.owner.operands[0]
    batch, _, rows, size = dims
    return v if TensorType.of(v).dims == (batch, 1, rows, size) else None


def _is_of_halves(v: ir.Value, x: ir.Value, rw: Rewriter) -> bool:
    """Return whether a value is concat(-x_high, x_low) along the last dim."""
    joined = rw.defining(v, Concat)
    if joined is None or joined.axis not in (-1, _LAST) or len(joined.operands) != 2:
        return False
    back, size = rw.defining(joined.operands[0], Neg), TensorType.of(v).dims[_LAST]
    if back is None or size == DYN or size % 2:
        return False
    half = size // 2
    low, high = joined.operands[1], back.operands[0]
    return _is_part(low, x, (0, half), rw) and _is_part(high, x, (half, size), rw)


def _is_part(v: ir.Value, x: ir.Value, ends: tuple[int, int], rw: Rewriter) -> bool:
    """Return whether a value is x[.., start:end], also as one slice of what x is a slice of."""
    source, ranges = _box(v, rw)
    if source == x:
        return ranges == {_LAST: ends}
    whole, own = _box(x, rw)
    return source == whole and _LAST not in own and ranges == {**own, _LAST: ends}


def _box(v: ir.Value, rw: Rewriter) -> tuple[ir.Value, dict[int, tuple[int, int]]]:
    """Return the source of a slice, and the range of each sliced axis; another value itself."""
    found = rw.defining(v, Slice)
    if found is None or len(found.operands) != 1:
        return v, {}
    ranges = zip(found.starts, found.ends, strict=True)
    return found.operands[0], dict(zip(found.axes, ranges, strict=True))


@dataclass(frozen=True)
class FuseCacheRows(PatternPass):
    """RoPE and transposes of the new rows of a cache become a part of its update."""

    name: ClassVar[str] = "fuse_cache_rows"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_turned_rows, find_rows_first)
    turned: bool = option(True, "RoPE too")

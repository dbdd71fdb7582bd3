"""rewrite_pooling: pooling as a reduction, without dilations; lrn as pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.normalize import Lrn
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.windows import window_pads
from mgx_mlir.passes.analysis.channels_last import to_first, to_last
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

_LARGEST = 100_000  # elements of a pooling that is rewritten by gathers


@pattern(Pooling)
def replace_with_reduce(op: Pooling, rw: Rewriter) -> Replacement:
    """pooling(x) over all of each plane -> reduce_mean(x) or reduce_max(x)"""
    if op.mode not in ("average", "max"):
        return no_match("mode {} has no reduction", op.mode)
    t = TensorType.of(op.operands[0])
    axes = _spatial_axes(op, t)
    if not op.dyn_global:
        extents = tuple(t.dims[a] for a in axes)
        if DYN in extents or tuple(op.lengths) != extents:
            return no_match("window {} is not the plane {}", op.lengths, extents)
        if any(op.padding) or op.padding_mode != "default_" or any(d != 1 for d in op.dilations):
            return no_match("it has padding or dilations")
    out = TensorType.of(op.results[0]).dims
    if any(out[a] != 1 for a in axes):
        return no_match("it has more than one window")
    if not t.dtype.is_float and op.mode == "average":
        return no_match("the mean of {} rounds otherwise", t.dtype)
    return rw.op("reduce_mean" if op.mode == "average" else "reduce_max", op.operands[0], axes=axes)


@pattern(Pooling)
def replace_dilations_with_gather_pooling(op: Pooling, rw: Rewriter) -> Replacement:
    """pooling{dilations}(x) -> pooling{stride = lengths}(gather(pad(x)))

    The gathers copy the windows next to each other, for backends without dilated pooling.
    """
    if not rw.options.rewrite_dilations:
        return no_match("the target pools with dilations (rewrite-dilations is off)")
    t, out = TensorType.of(op.input), TensorType.of(op.out)
    axes = _spatial_axes(op, t)
    if op.dyn_global or all(d == 1 for d in op.dilations):
        return no_match("it has no dilations")
    if not (t.is_known and out.is_known):
        return no_match("{} has dynamic dims", t)
    lengths: list[int] = list(op.lengths)
    stride: list[int] = list(op.stride)
    dilations: list[int] = list(op.dilations)
    counts = [out.dims[a] for a in axes]
    if out.elements * math.prod(lengths) > _LARGEST:
        return no_match("its windows have more than {} elements", _LARGEST)
    pads = window_pads(
        [t.dims[a] for a in axes], lengths, stride, dilations, op.padding, op.padding_mode
    )
    # reach of the last window beyond the padding (ceil_mode), and unread rows
    reach: list[int] = [
        (n - 1) * s + (k - 1) * d + 1 - (t.dims[a] + low)
        for n, s, k, d, a, (low, _) in zip(
            counts, stride, lengths, dilations, axes, pads, strict=True
        )
    ]
    if op.mode == "average":
        beyond = any(r > high for r, (_, high) in zip(reach, pads, strict=True))
        if beyond or (not op.count_include_pad and any(map(any, pads))):
            return no_match("padding does not count in the average")
    room = [(low, max(high, r)) for (low, high), r in zip(pads, reach, strict=True)]
    x = _padded(op, rw, t, axes, room)
    for a, n, s, k, d in zip(axes, counts, stride, lengths, dilations, strict=True):
        if s == k and d == 1 and TensorType.of(x).dims[a] == n * k:
            continue
        places = np.arange(n)[:, None] * s + np.arange(k) * d
        x = rw.op("gather", x, rw.literal(places.reshape(-1).astype(np.int64)), axis=a)
    none = [0] * len(axes)
    return rw.op(
        "pooling", x, mode=op.mode, lengths=lengths, stride=lengths, padding=none,
        dilations=[1] * len(axes), lp_order=op.lp_order, channels_last=op.channels_last,
    )  # fmt: skip


@pattern(Lrn)
def lower_lrn_to_pooling(op: Lrn, rw: Rewriter) -> Replacement:
    """lrn(x) -> x / (bias + alpha * average pooling(x * x) along the channels) ^ beta"""
    if not rw.options.rewrite_lrn:
        return no_match("the target has lrn (rewrite-lrn is off)")
    t = TensorType.of(op.input)
    if not t.is_static or 0 in t.dims:
        return no_match("{} has dims that are dynamic or 0", t)
    x = op.input
    if t.dtype.is_low_precision:  # squares are not rounded
        x = rw.op("convert", x, target_type=dtypes.FLOAT)
    squares = rw.op("mul", x, x)
    if t.rank == 2:
        squares = rw.op("unsqueeze", squares, axes=[1])
    else:
        squares = rw.op("transpose", squares, permutation=to_last(t.rank))
    # N,s..,C: the first spatial axis stands for channels, the last axis is pooled
    spatial = TensorType.of(squares).rank - 2
    ones, low, high = [1] * (spatial - 1), (op.size - 1) // 2, op.size // 2
    none = [0] * (spatial - 1)
    mean = rw.op(
        "pooling", squares, mode="average", lengths=[*ones, op.size], stride=[1] * spatial,
        dilations=[1] * spatial, padding=[*none, low, *none, high], count_include_pad=True,
    )  # fmt: skip
    if t.rank == 2:
        mean = rw.op("squeeze", mean, axes=[1])
    else:
        mean = rw.op("transpose", mean, permutation=to_first(t.rank))
    y = rw.div(x, rw.pow(rw.add(rw.mul(mean, op.alpha), op.bias), op.beta))
    return rw.op("convert", y, target_type=t.dtype) if t.dtype.is_low_precision else y


def _spatial_axes(op: Op, t: TensorType) -> list[int]:
    return list(range(1, t.rank - 1)) if op.channels_last else list(range(2, t.rank))


def _padded(
    op: Op, rw: Rewriter, t: TensorType, axes: Sequence[int], room: Sequence[tuple[int, int]]
) -> ir.Value:
    """Pad the input to the reach of the windows, with a neutral value."""
    if not any(map(any, room)):
        return op.input
    pads = [0] * (2 * t.rank)
    for a, (low, high) in zip(axes, room, strict=True):
        pads[a], pads[t.rank + a] = low, high
    value = t.dtype.lowest() if op.mode == "max" else 0
    return rw.op("pad", op.input, pads=pads, mode="constant", value=value)


@dataclass(frozen=True)
class RewritePooling(PatternPass):
    """Replace global pooling by reductions; optionally dilations and lrn too.

    These options are off, as the lowering has faster kernels for dilated windows and lrn.
    """

    name: ClassVar[str] = "rewrite_pooling"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        replace_with_reduce,
        replace_dilations_with_gather_pooling,
        lower_lrn_to_pooling,
    )
    rewrite_dilations: bool = option(False, "gather the windows of dilated pooling")
    rewrite_lrn: bool = option(False, "lrn as pooling along the channels")

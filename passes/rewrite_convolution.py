"""rewrite_convolution: transposed and 3-D convolutions as 2-D ones, computed padding as
attributes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, ConvolutionBackwards
from mgx_mlir.dialects.migraphx.windows import both_pads, same_pads
from mgx_mlir.passes.analysis.channels_last import to_first, to_last
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

_LAST = 2**63 - 1  # a slice bound past any extent


@dataclass(frozen=True)
class _Phases:
    """One axis of a transposed convolution, as a convolution with `stride` results per window."""

    stride: int
    taps: int  # taps of each result
    dilation: int
    low: int  # padding ahead of the input
    high: int  # padding behind the input
    first: int  # results to drop at the start
    last: int  # results to drop at the end


def _phases(kernel: int, stride: int, dilation: int, before: int, after: int) -> _Phases | None:
    """Return the phases of an axis whose first `before` and last `after` results are dropped;
    None where there is no such form.
    """
    if stride > 1 and dilation > 1:
        return None
    taps = -(-kernel // stride)
    reach = (taps - 1) * dilation
    # windows are at whole strides; fully dropped ones are not computed
    skipped = min(reach, before // stride)
    spare = taps * stride - kernel if stride > 1 else 0
    dropped = min(reach, (spare + after) // stride)
    return _Phases(
        stride, taps, dilation, reach - skipped, reach - dropped, before - skipped * stride,
        spare + after - dropped * stride,
    )  # fmt: skip


def _axes(op: ConvolutionBackwards) -> list[_Phases] | None:
    kernel = TensorType.of(op.weights).dims[2:]
    count = len(kernel)
    if op.padding_mode == "default_":
        pads = both_pads(op.padding, count)
    else:  # rows beyond stride * extent
        pads: list[tuple[int, int]] = []
        for k, s, r in zip(kernel, op.stride, op.dilation, strict=True):
            whole = r * (k - 1) + 1 - s
            total = max(whole, 0)
            before = total // 2 if op.padding_mode == "same_upper" else total - total // 2
            pads.append((before, whole - before))
    found = [
        _phases(k, s, r, *p)
        for k, s, r, p in zip(kernel, op.stride, op.dilation, pads, strict=True)
    ]
    return [f for f in found if f is not None] if None not in found else None


@pattern(ConvolutionBackwards)
def find_transposed_convolution(op: ConvolutionBackwards, rw: Rewriter) -> Replacement:
    """convolution_backwards(x, w) -> results of a convolution of x, a stride of them at a time

    A result's taps are those of its phase: its index modulo the stride. The phases of one window
    are channels of the convolution, which are then interleaved.
    """
    x, w, out = (TensorType.of(v) for v in (op.input, op.weights, op.out))
    if not literals.is_literal(op.weights):
        return no_match("the weights are not constant")
    if x.rank not in (3, 4) or not x.dtype.is_float:
        return no_match("{} is not an image of floats", x)
    if x.dims[1] == DYN or 0 in (*x.dims, *w.dims, *out.dims):
        return no_match("{} has unknown channels, or no elements", x)
    if x.rank > 3 and DYN in (*x.dims, *out.dims):
        return no_match("{} has several windows along unknown dims", x)
    axes = _axes(op)
    if axes is None:
        return no_match("it has both strides and dilations")
    spatial, group = x.rank - 2, op.group
    strides = [a.stride for a in axes]
    each = w.dims[1]
    y = rw.op(
        "convolution", rw.op("transpose", op.input, permutation=to_last(x.rank)),
        rw.literal(_phase_weights(literals.array_of(op.weights), axes, group)),
        padding=[*(a.low for a in axes), *(a.high for a in axes)], stride=[1] * spatial,
        dilation=[a.dilation for a in axes], group=group, padding_mode="default_",
        channels_last=True,
    )  # fmt: skip
    if any(s > 1 for s in strides):
        # 0 copies the extent, which has the same position in the new dims
        n, *counts = (0 if d == DYN else d for d in TensorType.of(y).dims[:-1])
        y = rw.op("reshape", y, dims=[n, *counts, group, *strides, each])
        places = [i for a in range(spatial) for i in (1 + a, 2 + spatial + a)]
        y = rw.op("transpose", y, permutation=[0, *places, 1 + spatial, 2 + 2 * spatial])
        wide = [c * s or -1 for c, s in zip(counts, strides, strict=True)]
        y = rw.op("reshape", y, dims=[n, *wide, group * each])
    for i, axis in enumerate(axes):
        if axis.first or axis.last:
            extent = out.dims[2 + i]
            y = rw.op(
                "slice", y, axes=[1 + i], starts=[axis.first],
                ends=[-axis.last or (_LAST if extent == DYN else extent + axis.first)],
            )  # fmt: skip
    return rw.op("transpose", y, permutation=to_first(x.rank))


def _phase_weights(w: np.ndarray, axes: list[_Phases], group: int) -> np.ndarray:
    """Weights [C, O / group, k..] as those of a convolution, [taps.., C / group, all channels].

    Its channels are [group, phases.., O / group].
    """
    count = len(axes)
    kernel = w.shape[2:]
    filled = [(0, a.taps * a.stride - k) for a, k in zip(axes, kernel, strict=True)]
    w = np.pad(w, [(0, 0), (0, 0), *filled])
    split = [n for a in axes for n in (a.taps, a.stride)]
    w = w.reshape(group, w.shape[0] // group, w.shape[1], *split)
    taps = [3 + 2 * i for i in range(count)]
    # the first tap reads the last element
    w = w[(..., *(s for _ in axes for s in (slice(None, None, -1), slice(None))))]
    w = w.transpose(*taps, 1, 0, *(t + 1 for t in taps), 2)
    return np.ascontiguousarray(w.reshape(*w.shape[: count + 1], -1))


@pattern(Convolution)
def find_volume_convolution(op: Convolution, rw: Rewriter) -> Replacement:
    """convolution(x of depth, height, width) -> convolution of images with their neighbours

    The taps along the depth become channels: images that one window reads are concatenated.
    """
    x, w, out = (TensorType.of(v) for v in (op.input, op.weights, op.out))
    if x.rank != 5 or op.channels_last:
        return no_match("it is not a 3-D convolution")
    if op.group != 1 or op.padding_mode != "default_" or not x.dtype.is_float:
        return no_match("it has groups or computed padding, or is not of floats")
    if DYN in (*x.dims, *w.dims, *out.dims) or 0 in (*x.dims, *w.dims, *out.dims):
        return no_match("{} has unknown dims, or no elements", x)
    pads = both_pads(op.padding, 3)
    if any(p < 0 for pair in pads for p in pair):
        return no_match("it has negative padding")
    outputs, channels, depth, *kernel = w.dims
    v = rw.op("transpose", op.input, permutation=to_last(5))
    low, high = pads[0]
    if low or high:
        v = rw.op("pad", v, mode="constant", pads=[0, low, 0, 0, 0, 0, high, 0, 0, 0], value=0.0)
    stride, apart = op.stride[0], op.dilation[0]
    total = TensorType.of(v).dims[1]
    images: list[ir.Value] = []
    for i in range(depth):
        part, behind = v, (depth - 1 - i) * apart
        if depth > 1:
            end = -behind if behind else total
            part = rw.op("slice", part, axes=[1], starts=[i * apart], ends=[end])
        if stride > 1:
            part = rw.op("step", part, axes=[1], steps=[stride])
        images.append(part)
    v = rw.op("concat", images, axis=4) if depth > 1 else images[0]
    n, count, high_in, wide_in, deep = TensorType.of(v).dims
    v = rw.op("reshape", v, dims=[n * count, high_in, wide_in, deep])
    rows = rw.op("transpose", op.weights, permutation=[3, 4, 2, 1, 0])
    rows = rw.op("reshape", rows, dims=[*kernel, depth * channels, outputs])
    y = rw.op(
        "convolution", v, rows, padding=[pads[1][0], pads[2][0], pads[1][1], pads[2][1]],
        stride=list(op.stride[1:]), dilation=list(op.dilation[1:]), group=1,
        padding_mode="default_", channels_last=True,
    )  # fmt: skip
    y = rw.op("reshape", y, dims=[out.dims[0], *out.dims[2:], outputs])
    return rw.op("transpose", y, permutation=to_first(5))


@pattern(Convolution)
def find_computed_padding(op: Convolution, rw: Rewriter) -> Replacement:
    """convolution{same_upper or same_lower}(x, w) -> convolution{padding}(x, w)

    With a stride of 1 the padding depends on the window alone, else the extent has to be known.
    """
    if op.padding_mode == "default_":
        return no_match("its padding is stated")
    x, w = TensorType.of(op.input), TensorType.of(op.weights)
    size, kernel = (x.dims[1:-1], w.dims[:-2]) if op.channels_last else (x.dims[2:], w.dims[2:])
    if DYN in (*size, *kernel) or any(is_named(k) for k in kernel):
        return no_match("{} or its window has unknown dims", x)
    for d, s in zip(size, op.stride, strict=True):
        if is_named(d) and s > 1:
            return no_match("a dynamic extent is stepped through")
    known = [1 if is_named(d) or s == 1 else d for d, s in zip(size, op.stride, strict=True)]
    pads = same_pads(known, kernel, op.stride, op.dilation, op.padding_mode)
    names = ("stride", "dilation", "group", "channels_last")
    return rw.op(
        "convolution", op.input, op.weights, padding_mode="default_",
        padding=[*(low for low, _ in pads), *(high for _, high in pads)],
        **{n: getattr(op, n) for n in names},
    )  # fmt: skip


@dataclass(frozen=True)
class RewriteConvolution(PatternPass):
    """Convolutions in the forms that have kernels: images, with padding that is stated."""

    name: ClassVar[str] = "rewrite_convolution"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_computed_padding,
        find_transposed_convolution,
        find_volume_convolution,
    )

"""Convolutions and pooling of any spatial rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.extents import (
    Extent,
    extents,
    plus,
    product,
    reshaped,
    scalar,
    times,
    vector,
    zeros_of,
)
from mgx_mlir.frontends.helpers import (
    along,
    arange,
    channel_dims,
    convert,
    greater_equal,
    known_extent,
    less_equal,
    require,
    reshape,
    slice_,
    zeros,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import element, gather_or
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.values import Value
from mgx_mlir.frontends.windows import WindowAxis, max_places, same_padding
from mgx_mlir.programs.build import Builder


@dataclass(frozen=True)
class ConvAttributes(Attributes):
    """Attributes of a convolution's window."""

    auto_pad: str = "NOTSET"
    dilations: Sequence[int] | None = None
    group: int = 1
    kernel_shape: Sequence[int] | None = None
    pads: Sequence[int] | None = None
    strides: Sequence[int] | None = None


@dataclass(frozen=True)
class PoolAttributes(Attributes):
    """Attributes of a pooling's window."""

    kernel_shape: Sequence[int]
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    dilations: Sequence[int] | None = None
    pads: Sequence[int] | None = None
    strides: Sequence[int] | None = None


def _spatial(
    given: Sequence[int] | None, n: int, default: int, what: str, least: int = 1
) -> list[int]:
    values = [default] * n if given is None or len(given) == 0 else list(given)
    if len(values) != n or any(v < least for v in values):
        raise ModelError(f"{what} expected {n} numbers from {least}, got {values}")
    return values


def same_pads(
    dims: Sequence[int], window: Sequence[int], stride: Sequence[int], upper: bool
) -> tuple[list[int], list[int]]:
    """Return SAME padding: ceil(dim / stride) outputs, the odd element at the end for SAME_UPPER.

    A dynamic dim has a stride of 1; for others see `run_time_mode`.
    """
    begin, end = [], []
    for d, w, s in zip(dims, window, stride, strict=True):
        total = w - 1 if d == DYN else max((-(-d // s) - 1) * s + w - d, 0)
        small, large = total // 2, total - total // 2
        begin.append(small if upper else large)
        end.append(large if upper else small)
    return begin, end


def window_pads(
    auto_pad: str,
    pads: Sequence[int] | None,
    dims: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return begin and end padding from ONNX's auto_pad and pads."""
    n = len(dims)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return same_pads(dims, window, stride, auto_pad == "SAME_UPPER")
    if auto_pad == "VALID":
        return [0] * n, [0] * n
    if auto_pad not in ("NOTSET", ""):
        raise ModelError(f"attribute 'auto_pad' has unknown value {auto_pad}")
    values = _spatial(pads, 2 * n, 0, "pads", -(2**31))
    return values[:n], values[n:]


def run_time_mode(auto_pad: str, dims: Sequence[int], stride: Sequence[int]) -> str:
    """Return the padding mode of a window whose SAME padding depends on a dynamic extent."""
    depends = any(d == DYN and s != 1 for d, s in zip(dims, stride, strict=True))
    modes = {"SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower"}
    return modes.get(auto_pad, "default_") if depends else "default_"


def padded_for(b: Builder, x: Value, begin: list[int], end: list[int]) -> Value:
    """Apply negative padding: slice the input and set the pads to 0, in place."""
    dims = b.dims(x)
    axes, starts, ends = [], [], []
    for i, (p, q) in enumerate(zip(begin, end, strict=True)):
        if p >= 0 and q >= 0:
            continue
        axes.append(i + 2)
        starts.append(max(-p, 0))
        known = 0 if dims[i + 2] == DYN else dims[i + 2]  # a dynamic dim: from the end
        ends.append(min(q, 0) + known if q < 0 or known else 2**63 - 1)
        begin[i], end[i] = max(p, 0), max(q, 0)
    return slice_(b, x, axes, starts, ends) if axes else x


def biased(b: Builder, x: Value, bias: Value | None) -> Value:
    """Return `x` plus a bias of its channels, axis 1."""
    return x if bias is None else b.add(x, along(b, bias, x, 1))


def weights_in(b: Builder, w: Value, kernel: Sequence[int] | None) -> Value:
    """Return weights with static spatial dims: dynamic ones are those of `kernel_shape`.

    Errors: NotSupported if no attribute states them.
    """
    dims = b.dims(w)
    for i, k in enumerate(kernel or ()):
        if i + 2 < len(dims):
            w = known_extent(b, w, i + 2, k, "weights")
    if DYN in b.dims(w)[2:]:
        raise NotSupported(f"weights of dynamic dims {show_dims(dims)} without kernel_shape")
    return w


def _geometry(
    b: Builder, x: Value, w: Value, window: ConvAttributes
) -> tuple[Sequence[int], list[int], list[int], list[int]]:
    """Return the spatial dims of x, dilations, strides, and the extents of the window.

    Errors: ModelError if the ranks or `kernel_shape` do not fit the weights.
    """
    dims, weights = b.dims(x), b.dims(w)
    n = len(dims) - 2
    if n < 1 or len(weights) != len(dims):
        raise ModelError(
            f"expected input and weights of one rank, 3 or more, got {len(dims)} and {len(weights)}"
        )
    kernel = window.kernel_shape
    if kernel is not None and list(kernel) != list(weights[2:]):
        raise ModelError(f"kernel_shape {list(kernel)} differs from weights {weights}")
    dilation = _spatial(window.dilations, n, 1, "dilations")
    stride = _spatial(window.strides, n, 1, "strides")
    extents = [(k - 1) * d + 1 for k, d in zip(weights[2:], dilation, strict=True)]
    return dims[2:], dilation, stride, extents


def convolution(b: Builder, x: Value, w: Value, window: ConvAttributes) -> Value:
    """Return the convolution of x {batch, channels, spatial..} with w, without a bias."""
    w = weights_in(b, w, window.kernel_shape)
    dims, dilation, stride, extents = _geometry(b, x, w, window)
    how = {"stride": stride, "dilation": dilation, "group": window.group}
    mode = run_time_mode(window.auto_pad, dims, stride)
    if mode != "default_":
        return b.convolution(x, w, padding=[0] * len(dims), padding_mode=mode, **how)
    begin, end = window_pads(window.auto_pad, window.pads, dims, extents, stride)
    x = padded_for(b, x, begin, end)
    padding = begin if begin == end else begin + end
    return b.convolution(x, w, padding=padding, **how)


@onnx_op("Conv", since=1)
def conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None = None,
    *,
    window: ConvAttributes,
) -> Value:
    """Import Conv, of any number of spatial dims and groups."""
    out = convolution(b, x, w, window)
    return biased(b, out, bias)


@onnx_op("ConvInteger", since=10)
def conv_integer(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    x_zero: Value | None = None,
    w_zero: Value | None = None,
    *,
    window: ConvAttributes,
) -> Value:
    """Import ConvInteger: zero points are subtracted first, in i32, so that padding is a true
    zero.
    """
    x = convert(b, x, INT32)
    w = convert(b, w, INT32)
    if x_zero is not None:
        x = b.sub(x, convert(b, x_zero, INT32))
    if w_zero is not None:
        zero = convert(b, w_zero, INT32)
        if len(b.dims(zero)) == 1 and b.dims(zero)[0] != 1:
            zero = reshape(b, zero, channel_dims(len(b.dims(w)), 0))
        w = b.sub(w, zero)
    return convolution(b, x, w, window)


@onnx_op("ConvTranspose", since=1)
def conv_transpose(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None = None,
    *,
    window: ConvAttributes,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> Value:
    """Import ConvTranspose: compute the whole result, then crop it by pads and add
    output_padding.
    """
    w = weights_in(b, w, window.kernel_shape)
    dims, dilation, stride, extents = _geometry(b, x, w, window)
    n = len(dims)
    extra = _spatial(output_padding, n, 0, "output_padding", 0)
    begin, end = [0] * n, [0] * n
    starts, wanted = None, []
    if output_shape and DYN in dims:
        wanted = _spatial(list(output_shape)[-n:], n, 1, "output_shape")
        starts = _run_time_starts(b, x, wanted, stride, extents, extra, window.auto_pad)
        # extent that an output depends on
        end = [e + 1 - s for e, s in zip(extra, stride, strict=True)]
    elif output_shape:
        wanted = _spatial(list(output_shape)[-n:], n, 1, "output_shape")
        begin, end = _transposed_pads(
            dims, wanted, stride, extents, extra, window.auto_pad, stated=True
        )
    elif window.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [d * s if d != DYN else DYN for d, s in zip(dims, stride, strict=True)]
        begin, end = _transposed_pads(dims, wanted, stride, extents, extra, window.auto_pad)
    else:
        begin, end = window_pads(window.auto_pad, window.pads, dims, extents, stride)
    full = b.convolution_backwards(
        x, w, padding=[0] * n, stride=stride, dilation=dilation, group=window.group
    )
    cut_begin = [max(p, 0) for p in begin]
    # crop at the end; a negative one is padding
    late = [q - e for q, e in zip(end, extra, strict=True)]
    sizes = b.dims(full)
    out = full
    cut = [i for i in range(n) if cut_begin[i] or late[i] > 0]
    if cut:
        ends = []
        most = [p + max(q, 0) for p, q in zip(cut_begin, late, strict=True)]
        full = _reaching(b, full, most, extents)
        for i in cut:
            if sizes[i + 2] == DYN:
                ends.append(-late[i] if late[i] > 0 else 2**31 - 1)
            else:
                ends.append(sizes[i + 2] - max(late[i], 0))
        out = b.slice(
            full, axes=[i + 2 for i in cut], starts=[cut_begin[i] for i in cut], ends=ends
        )
    if any(q < 0 for q in late) or any(p < 0 for p in begin):
        pad = [0, 0, *(max(-p, 0) for p in begin), 0, 0, *(max(-q, 0) for q in late)]
        out = b.pad(out, pads=pad)
    if starts is not None:
        out = _window(b, out, starts, wanted)
    return biased(b, out, bias)


def _reaching(b: Builder, x: Value, cut: Sequence[int], least: Sequence[int]) -> Value:
    """Return x, which has as many elements along each spatial dim as are cut off it.

    least: extents of a window, which an input of one element or more gives.
    """
    for axis, (size, count) in enumerate(zip(b.dims(x)[2:], cut, strict=True), 2):
        if size != DYN and count > size:
            raise ModelError(
                f"pads expected to cut at most {size} elements along dim {axis}, got {count}"
            )
        if size == DYN and count > least[axis - 2]:
            fits = greater_equal(b, scalar(b, extents(b, x)[axis]), count)
            x = require(b, x, fits, f"pads that cut no more than there is along dim {axis}")
    return x


def _run_time_starts(
    b: Builder,
    x: Value,
    wanted: Sequence[int],
    stride: Sequence[int],
    window: Sequence[int],
    extra: Sequence[int],
    auto_pad: str,
) -> list[Extent]:
    """Return where an output_shape begins in the whole result, as _transposed_pads crops it."""
    found: list[Extent] = []
    own = extents(b, x)[2:]
    for d, o, s, w, e in zip(own, wanted, stride, window, extra, strict=True):
        total = plus(b, times(b, d, s), w - s + e - o)
        total = b.max(scalar(b, total), 0)
        small = b.div(total, 2)
        found.append(small if auto_pad == "SAME_UPPER" else b.sub(total, small))
    return found


def _window(b: Builder, x: Value, starts: Sequence[Extent], lengths: Sequence[int]) -> Value:
    """Return the spatial part of x that begins at starts; it must lie inside."""
    ends = [plus(b, s, o) for s, o in zip(starts, lengths, strict=True)]
    own = extents(b, x)
    for axis, end in enumerate(ends, 2):
        fits = less_equal(b, scalar(b, end), scalar(b, own[axis]))
        x = require(b, x, fits, f"an output_shape within reach of the input along dim {axis}")
    axes = list(range(2, 2 + len(ends)))
    cut = b.op("slice", x, vector(b, starts), vector(b, ends), axes=axes)
    return reshaped(b, cut, [*own[:2], *lengths])


def _transposed_pads(
    dims: Sequence[int],
    wanted: Sequence[int],
    stride: Sequence[int],
    window: Sequence[int],
    extra: Sequence[int],
    auto_pad: str,
    *,
    stated: bool = False,
) -> tuple[list[int], list[int]]:
    """Return how much is cropped from the whole result at its begins and ends; negative values pad.

    stated: `wanted` is an output_shape. onnxruntime pads it at the end; with SAME the standard's
    formula distributes the padding.
    """
    begin, end = [], []
    for d, o, s, w, e in zip(dims, wanted, stride, window, extra, strict=True):
        # d cancels in o = d * s
        total = (w - s + e) if o == DYN else s * (d - 1) + e + w - o
        small, large = total // 2, total - total // 2
        if stated and total < 0:
            small, large = (0, total) if auto_pad == "SAME_UPPER" else (total, 0)
        if auto_pad == "SAME_UPPER":
            begin.append(small)
            end.append(large)
        else:
            begin.append(large)
            end.append(small)
    return begin, end


# ---- pooling -----------------------------------------------------------------------------------


class _Pool:
    """Window of a pooling node, with its padding extended for ceil_mode.

    If padding or the last window depends on a dynamic extent, the op decides at run time: by
    `mode`, the padding mode, and by `at_run_time`, its own ceil_mode.
    """

    def __init__(self, b: Builder, x: Value, a: PoolAttributes) -> None:
        dims = b.dims(x)
        self.n = len(dims) - 2
        if self.n < 1:
            raise ModelError(f"expected rank 3 or more, got {len(dims)}")
        self.lengths = _spatial(a.kernel_shape, self.n, 1, "kernel_shape")
        self.stride = _spatial(a.strides, self.n, 1, "strides")
        self.dilation = _spatial(a.dilations, self.n, 1, "dilations")
        window = [(k - 1) * d + 1 for k, d in zip(self.lengths, self.dilation, strict=True)]
        self.mode = run_time_mode(a.auto_pad, dims[2:], self.stride)
        self.begin = self.end = [0] * self.n
        if self.mode == "default_":
            self.begin, self.end = window_pads(a.auto_pad, a.pads, dims[2:], window, self.stride)
        self.ceil = bool(a.ceil_mode) and a.auto_pad in ("NOTSET", "")
        self.window = window
        self.dims = dims
        self.at_run_time = self.ceil and DYN in dims[2:]
        self.grown = [0] * self.n  # padding at the end beyond the node's own
        self.counts: list[int] = []  # numbers of windows per axis
        if self.at_run_time or self.mode != "default_":
            self.counts = [DYN] * self.n
            return
        for i, d in enumerate(dims[2:]):
            if d == DYN:
                self.counts.append(DYN)
                continue
            room = d + self.begin[i] + self.end[i] - window[i]
            count = room // self.stride[i] + 1
            if self.ceil:
                count = -(-room // self.stride[i]) + 1
                # a window that starts in the padding at the end is dropped
                if (count - 1) * self.stride[i] >= d + self.begin[i]:
                    count -= 1
                self.grown[i] = max(0, (count - 1) * self.stride[i] - room)
            self.counts.append(count)

    def nothing(self, b: Builder, dtype: DType) -> Value | None:
        """Return an empty result if a window exceeds the padded input by less than a stride."""
        if 0 not in self.counts or min(self.counts) < 0 or DYN in self.dims:
            return None
        return zeros(b, [*self.dims[:2], *self.counts], dtype)

    def attributes(self, grown: bool) -> dict[str, Any]:
        """Return the attributes of a `pooling`; `grown` adds the padding of ceil_mode."""
        end = [e + g for e, g in zip(self.end, self.grown, strict=True)] if grown else self.end
        padding = self.begin if self.begin == end else self.begin + end
        return {
            "padding": padding,
            "stride": self.stride,
            "lengths": self.lengths,
            "dilations": self.dilation,
            "padding_mode": self.mode,
            "ceil_mode": self.at_run_time,
        }


@onnx_op("MaxPool", since=1)
def max_pool(
    b: Builder,
    node: Node,
    x: Value,
    *,
    window: PoolAttributes,
    storage_order: int = 0,
) -> tuple[Value, Value | None]:
    """Import MaxPool; output 1 is the index of each maximum."""
    pool = _Pool(b, x, window)
    if (nothing := pool.nothing(b, b.dtype(x))) is not None:
        return nothing, pool.nothing(b, INT64)
    out = b.pooling(x, mode="max", **pool.attributes(grown=True))
    if not node.wants(1):
        return out, None
    return out, _max_indices(b, x, out, pool, bool(storage_order))


def _max_indices(b: Builder, x: Value, out: Value, pool: _Pool, column_major: bool) -> Value:
    """Return the flat index of each maximum in `x`, for the windows of `out`."""
    n, c, *own = extents(b, x)
    axes, counts = [], extents(b, out)[2:]
    for i, count in enumerate(counts):
        axis = WindowAxis(count, pool.lengths[i], pool.stride[i], pool.dilation[i], pool.begin[i])
        if pool.mode != "default_":
            window = (axis.taps - 1) * axis.dilation + 1
            pads = same_padding(b, own[i], count, axis.stride, window)
            axis = replace(axis, begin=pads[pool.mode != "same_upper"])
        axes.append(axis)
    place = max_places(b, x, axes, column_major=column_major)
    first = b.mul(arange(b, times(b, n, c)), scalar(b, product(b, own)))
    return b.add(place, reshaped(b, first, [n, c, *[1] * len(own)]))


@onnx_op("AveragePool", since=1)
def average_pool(
    b: Builder,
    node: Node,
    x: Value,
    *,
    window: PoolAttributes,
    count_include_pad: int = 0,
) -> Value:
    """Import AveragePool; padding counts if `count_include_pad` is set."""
    pool = _Pool(b, x, window)
    if (nothing := pool.nothing(b, b.dtype(x))) is not None:
        return nothing
    if count_include_pad and any(pool.grown):
        return _average_grown(b, x, pool)
    return b.pooling(
        x, mode="average", count_include_pad=bool(count_include_pad), **pool.attributes(True)
    )


def _average_grown(b: Builder, x: Value, pool: _Pool) -> Value:
    """Pad first, as data: the node's padding counts, and the padding of ceil_mode does not."""
    begin, end = pool.begin, pool.end
    data = b.pad(x, pads=[0, 0, *begin, 0, 0, *end]) if any(begin) or any(end) else x
    attributes = pool.attributes(True)
    attributes["padding"] = [0] * pool.n + pool.grown
    return b.pooling(data, mode="average", count_include_pad=False, **attributes)


@onnx_op("LpPool", since=2)
def lp_pool(
    b: Builder,
    node: Node,
    x: Value,
    *,
    window: PoolAttributes,
    p: int = 2,
) -> Value:
    """Import LpPool: the p-norm of each window."""
    pool = _Pool(b, x, window)
    if (nothing := pool.nothing(b, b.dtype(x))) is not None:
        return nothing
    return b.pooling(x, mode="lpnorm", lp_order=_order(p), **pool.attributes(True))


def _order(p: int) -> int:
    """Return the order of a norm. Errors: ModelError."""
    if p < 1:
        raise ModelError(f"p expected at least 1, got {p}")
    return p


def _spatial_axes(b: Builder, x: Value) -> list[int]:
    rank = len(b.dims(x))
    if rank < 3:
        raise ModelError(f"expected rank 3 or more, got {rank}")
    return list(range(2, rank))


onnx_table(
    {
        "GlobalAveragePool": lambda b, x: _global(b, x, "average", {}),
        "GlobalMaxPool": lambda b, x: _global(b, x, "max", {}),
    }
)
onnx_table(
    {"GlobalLpPool": lambda b, x, *, p=2: _global(b, x, "lpnorm", {"lp_order": _order(p)})}, since=2
)


def _global(b: Builder, x: Value, mode: str, options: dict[str, Any]) -> Value:
    axes = _spatial_axes(b, x)
    lengths = b.dims(x)[2:]
    if DYN in lengths and mode == "lpnorm":
        p = float(options["lp_order"])
        return b.pow(b.reduce_sum(b.pow(b.abs(x), p), axes=axes), 1 / p)
    if DYN in lengths:
        return getattr(b, {"average": "reduce_mean", "max": "reduce_max"}[mode])(x, axes=axes)
    n = len(axes)
    return b.pooling(
        x, mode=mode, lengths=list(lengths), padding=[0] * n, stride=[1] * n, dilations=[1] * n,
        **options,
    )  # fmt: skip


@onnx_op("MaxUnpool", since=9)
def max_unpool(
    b: Builder,
    node: Node,
    x: Value,
    indices: Value,
    output_shape: Value | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Import MaxUnpool: scatter each value to its flat index in a tensor of zeros."""
    own = extents(b, x)
    n = len(own) - 2
    stride = _spatial(strides, n, 1, "strides")
    padding = _spatial(pads, 2 * n, 0, "pads", 0)
    inner = own[:2]
    for i, (d, s, k) in enumerate(zip(own[2:], stride, kernel_shape, strict=True)):
        inner.append(plus(b, times(b, d, s), k - s - padding[i] - padding[n + i]))
    base = zeros_of(b, [product(b, inner)], b.dtype(x))
    indices = within(b, indices, "indices", 0, Dim(base, 0, "the number of places"))
    flat = b.scatter_none(base, b.reshape(indices, dims=[-1]), b.reshape(x, dims=[-1]), axis=0)
    out = reshaped(b, flat, inner)
    if output_shape is None:
        return out
    # indices refer to the default dims; a larger output_shape adds zeros at the end
    zero = b.literal(np.zeros((), b.dtype(x).np))
    for i in range(n):
        wanted = element(b, output_shape, i + 2)
        fits = greater_equal(b, wanted, scalar(b, inner[i + 2]))
        wanted = require(b, wanted, fits, f"output_shape[{i + 2}] no less than the unpooled extent")
        out = gather_or(b, out, arange(b, wanted), i + 2, zero)
    return out

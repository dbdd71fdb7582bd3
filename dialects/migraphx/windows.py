"""Sliding windows: extents, paddings and numpy forms shared by convolution and pooling; no ops."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.op import check
from mgx_mlir.core.shapes import DYN, add_dim, at_most, product
from mgx_mlir.dialects.migraphx.axes import ceil_div, show_list

PADDING_MODES = ("default_", "same_lower", "same_upper")


def check_window(
    n: int,
    padding: Sequence[int],
    **sizes: Sequence[int],
) -> None:
    """Check that `padding` has n or 2n entries >= 0, every other list n entries >= 1."""
    check(
        len(padding) in (n, 2 * n),
        lambda: f"padding expected {n} or {2 * n} numbers, got {len(padding)}",
    )
    check(
        all(p >= 0 for p in padding),
        lambda: f"padding expected no negative number, got {show_list(padding)}",
    )
    for name, values in sizes.items():
        check(
            len(values) == n,
            lambda name=name, values=values: f"{name} expected {n} numbers, got {len(values)}",
        )
        check(
            all(v >= 1 for v in values),
            lambda name=name, values=values: f"{name} expected at least 1, got {show_list(values)}",
        )


def both_pads(padding: Sequence[int], n: int) -> list[tuple[int, int]]:
    """(before, after) of each axis, from n or 2n numbers."""
    after = padding if len(padding) == n else padding[n:]
    return [(padding[i], after[i]) for i in range(n)]


def same_pads(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    mode: str,
) -> list[tuple[int, int]]:
    """Compute the paddings of same_upper (odd element at the end) and same_lower."""
    out: list[tuple[int, int]] = []
    for d, k, s, r in zip(extents, kernel, stride, dilation, strict=True):
        total = max((ceil_div(d, s) - 1) * s + (k - 1) * r + 1 - d, 0)
        small = total // 2
        out.append((small, total - small) if mode == "same_upper" else (total - small, small))
    return out


def window_pads(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    mode: str,
) -> list[tuple[int, int]]:
    """Return the paddings in force: those stated, or those of the mode at these extents."""
    if mode == "default_":
        return both_pads(padding, len(kernel))
    return same_pads(extents, kernel, stride, dilation, mode)


def window_count(
    extent: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], ceil: bool = False
) -> int:
    """Return how many windows fit along one axis; DYN where an extent is dynamic.

    With `ceil` a last window may end beyond the padding, but it starts inside of the input or
    the padding before it.
    """
    if DYN in (extent, kernel):
        return DYN
    room = extent + pads[0] + pads[1] - ((kernel - 1) * dilation + 1)
    if room < 0:
        return -1
    n = (ceil_div(room, stride) if ceil else room // stride) + 1
    if ceil and (n - 1) * stride >= extent + pads[0]:
        n -= 1
    return n


def window_counts(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    mode: str,
    ceil: bool = False,
) -> list[int]:
    """window_count of every axis; ShapeError where no window fits."""
    n = len(extents)
    if mode != "default_":
        return [DYN if d == DYN else ceil_div(d, s) for d, s in zip(extents, stride, strict=True)]
    pads = both_pads(padding, n)
    out: list[int] = []
    for i in range(n):
        count = window_count(extents[i], kernel[i], stride[i], dilation[i], pads[i], ceil)
        reach = add_dim(product((add_dim(kernel[i], -1), dilation[i])), 1)
        check(
            at_most(reach, add_dim(extents[i], sum(pads[i]))),
            lambda i=i: (
                f"window of extent {(kernel[i] - 1) * dilation[i] + 1} does not fit in "
                f"spatial dim {i} ({extents[i]}) with padding {pads[i][0]} and {pads[i][1]}"
            ),
        )
        out.append(count)
    return out


def pad_spatial(x: np.ndarray, pads: Sequence[tuple[int, int]], value: float = 0.0) -> np.ndarray:
    """`x` with its last axes padded."""
    if not any(b or a for b, a in pads):
        return x
    lead = x.ndim - len(pads)
    dims = [*x.shape[:lead], *(b + d + a for d, (b, a) in zip(x.shape[lead:], pads, strict=True))]
    out = np.full(dims, value, x.dtype)
    inner = [slice(b, b + d) for d, (b, _) in zip(x.shape[lead:], pads, strict=True)]
    out[(..., *inner)] = x
    return out


def windows(
    x: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    counts: Sequence[int],
) -> np.ndarray:
    """Return a view of padded `x` (lead.., spatial..) as (lead.., kernel.., counts..)."""
    n = len(kernel)
    lead = x.ndim - n
    steps = x.strides[lead:]
    dims = (*x.shape[:lead], *kernel, *counts)
    strides = (
        *x.strides[:lead],
        *(s * d for s, d in zip(steps, dilation, strict=True)),
        # one window takes no step: that of a file may be beyond any address
        *(s * t if c > 1 else 0 for s, t, c in zip(steps, stride, counts, strict=True)),
    )
    return np.lib.stride_tricks.as_strided(x, dims, strides, writeable=False)


def convolve(
    x: np.ndarray,
    w: np.ndarray,
    *,
    pads: Sequence[tuple[int, int]],
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int = 1,
) -> np.ndarray:
    """Cross-correlation of x (N, C, spatial..) with w (O, C/group, kernel..), by BLAS.

    Integers are multiplied as f64, exact below 2**53, and come back as i64.
    """
    if x.dtype.kind != "f":
        out = convolve(
            x.astype(np.float64),
            w.astype(np.float64),
            pads=pads,
            stride=stride,
            dilation=dilation,
            group=group,
        )
        return out.astype(np.int64)
    kernel = w.shape[2:]
    counts = [
        window_count(d, k, s, r, p)
        for d, k, s, r, p in zip(x.shape[2:], kernel, stride, dilation, pads, strict=True)
    ]
    batch, outs = x.shape[0], w.shape[0]
    depth = w.shape[1] * math.prod(kernel)
    cells = math.prod(counts)
    rows = np.ascontiguousarray(w.reshape(group, outs // group, depth))
    view = windows(pad_spatial(x, pads), kernel, stride, dilation, counts)
    out = np.empty((batch, group, outs // group, cells), np.result_type(x, w))
    for i in range(batch):
        np.matmul(rows, view[i].reshape(group, depth, cells), out=out[i])
    return out.reshape(batch, outs, *counts)


def channels_first(x: np.ndarray) -> np.ndarray:
    """(N, spatial.., C) as (N, C, spatial..)."""
    return np.moveaxis(x, -1, 1)


def channels_last(x: np.ndarray) -> np.ndarray:
    """Return (N, C, ...) as (N, ..., C)."""
    return np.moveaxis(x, 1, -1)

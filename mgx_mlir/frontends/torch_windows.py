"""Adaptive pools and antialiased resizes of torch, as gathers and weights of windows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any


def adaptive_max(x: Any, output_size: Sequence[Any]) -> tuple[Any, Any]:
    """Return the maximum of each window of adaptive_max_pool2d or 3d, and its index.

    The index is into the flattened spatial dims; the first of equal elements counts.
    """
    torch = _torch()
    count = len(output_size)
    first = x.ndim - count
    sizes, places = x.shape[first:], list[Any]()
    for i, out in enumerate(output_size):
        place, _, _ = _windows(sizes[i], out)
        places.append(place)
        dim = first + 2 * i
        x = x.index_select(dim, place.flatten()).unflatten(dim, tuple(place.shape))
    order = [*range(first), *range(first, x.ndim, 2), *range(first + 1, x.ndim, 2)]
    values, best = x.permute(order).flatten(first + count).max(-1)
    where = torch.zeros_like(best)
    stride = 1
    for i in reversed(range(count)):
        width = places[i].shape[1]
        # window of output i, and the position in it
        own = torch.arange(places[i].shape[0]).reshape([-1, *(1 for _ in range(i + 1, count))])
        where = where + places[i].flatten()[own * width + best % width] * stride
        best = torch.div(best, width, rounding_mode="floor")
        stride = stride * sizes[i]
    return values, where


def adaptive_mean(x: Any, output_size: Sequence[Any]) -> Any:
    """Return the mean of each window of an adaptive average pool."""
    first = x.ndim - len(output_size)
    for i, out in enumerate(output_size):
        dim = first + i
        place, inside, length = _windows(x.shape[dim], out)
        parts = x.index_select(dim, place.flatten()).unflatten(dim, tuple(place.shape))
        shape = [*place.shape, *(1 for _ in range(dim + 1, x.ndim))]
        total = _torch().where(inside.reshape(shape), parts, 0).sum(dim + 1)
        x = total / length.reshape(shape[:1] + shape[2:]).to(x.dtype)
    return x


def linear_between_corners(
    x: Any, output_size: Sequence[Any], align_corners: bool, scales_h: Any = None,
    scales_w: Any = None,
) -> Any:  # fmt: skip
    """Return an antialiased bilinear resize with align_corners, which ONNX's Resize cannot
    express.
    """
    return _between_corners(x, output_size, 2, _triangle) if align_corners else NotImplemented


def cubic_between_corners(
    x: Any, output_size: Sequence[Any], align_corners: bool, scales_h: Any = None,
    scales_w: Any = None,
) -> Any:  # fmt: skip
    """Return an antialiased bicubic resize with align_corners, which ONNX's Resize cannot
    express.
    """
    return _between_corners(x, output_size, 4, _cubic) if align_corners else NotImplemented


def _between_corners(
    x: Any, output_size: Sequence[Any], taps: int, weight: Callable[[Any], Any]
) -> Any:
    """Return x [.., h, w] resized with corner-to-corner steps and half-pixel centers.

    Torch reads output i at (i + 0.5) * step. Its filter is `taps` pixels wide, or `taps` steps if a
    step is longer than a pixel.
    """
    torch = _torch()
    for dim, out in ((-2, output_size[0]), (-1, output_size[1])):
        size = x.shape[dim]
        step = torch.full((), 0.0, dtype=torch.float64)
        if out != 1:
            step = step + (size - 1) / (out - 1)
        wide = torch.clamp(step, min=1)
        center = (torch.arange(out, dtype=torch.float64) + 0.5) * step
        first = torch.clamp(torch.trunc(center - wide * (taps / 2) + 0.5), min=0).unsqueeze(1)
        last = torch.trunc(center + wide * (taps / 2) + 0.5).unsqueeze(1)
        place = torch.arange(size, dtype=torch.float64)
        found = weight(((place - center.unsqueeze(1) + 0.5) / wide).abs())
        found = torch.where((place >= first) & (place < last), found, 0)
        rows = (found / found.sum(1, keepdim=True)).to(x.dtype)
        x = rows @ x if dim == -2 else x @ rows.mT
    return x


def _triangle(t: Any) -> Any:
    return _torch().clamp(1 - t, min=0)


def _cubic(t: Any) -> Any:
    """Return Keys' kernel with a = -0.5 at nonnegative distances."""
    near = (1.5 * t - 2.5) * t * t + 1
    far = ((-0.5 * t + 2.5) * t - 4) * t + 2
    return _torch().where(t < 1, near, _torch().where(t < 2, far, 0))


def _windows(size: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return the indices of each window, {out, width}, the mask of valid ones, and the window's
    length.

    A window begins at floor(i size / out) and ends before ceil((i + 1) size / out). Entries after
    its end repeat its first element.
    """
    torch = _torch()
    i = torch.arange(out)
    begin = torch.div(i * size, out, rounding_mode="floor")
    end = torch.div((i + 1) * size + (out - 1), out, rounding_mode="floor")
    even = isinstance(size, int) and isinstance(out, int) and size % out == 0
    width = size // out if even else (size + out - 1) // out + 1
    place = begin.unsqueeze(1) + torch.arange(width)
    inside = place < end.unsqueeze(1)
    return torch.where(inside, place, begin.unsqueeze(1)), inside, end - begin


def _torch() -> Any:
    return importlib.import_module("torch")

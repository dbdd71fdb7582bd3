"""Adaptive pools of torch, of any sizes: gathers of the windows and reductions over them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any


def adaptive_max(x: Any, output_size: Sequence[Any]) -> tuple[Any, Any]:
    """Return the largest of each window of adaptive_max_pool2d or 3d, and where it is.

    A place is an index into the flattened spatial dims; of equal elements the first counts.
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
        # the window of output i, and the step in it
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


def _windows(size: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return the places of each window, {out, width}, which of them are in it, and its length.

    A window begins at floor(i size / out) and ends before ceil((i + 1) size / out). What is behind
    its end repeats its beginning.
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

"""Channels-last and channels-first layouts, and windows with TensorFlow's paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import DYN
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.frontends.extents import Extent, plus, quotient
from mgx_mlir.frontends.helpers import transpose
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.frontends.windows import same_padding
from mgx_mlir.programs.build import Builder

_FAR = 2**63 - 1  # slice bound beyond every element


def to_first(b: Builder, x: Value) -> Value:
    """N,s..,C -> N,C,s..; cancels a transpose of `to_last`."""
    rank = len(b.dims(x))
    owner = x.owner
    if is_a(owner, Transpose):
        made = [int(i) for i in owner.attributes["permutation"]]
        if made == _last(rank):
            return owner.operands[0]
    return transpose(b, x, [0, rank - 1, *range(1, rank - 1)])


def to_last(b: Builder, x: Value) -> Value:
    """N,C,s.. -> N,s..,C."""
    return transpose(b, x, _last(len(b.dims(x))))


def _last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]


def spatial(values: Sequence[int], rank: int, last: bool, what: str, least: int = 1) -> list[int]:
    """Return the spatial entries of a list with one per axis; batch and channel entries must be
    1.
    """
    if len(values) == 0:
        values = [1] * rank
    if len(values) != rank:
        raise ModelError(f"{what} expected {rank} numbers, got {list(values)}")
    inner = list(values[1:-1] if last else values[2:])
    channel = values[-1] if last else values[1]
    if values[0] != 1 or channel != 1:
        raise NotSupported(f"{what} {list(values)} over the batch or the channels")
    if any(v < least for v in inner):
        raise ModelError(f"{what} expected numbers of {least} or more, got {list(values)}")
    return inner


def window_attributes(
    b: Builder,
    padding: str,
    explicit: Sequence[int],
    dims: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    last: bool,
) -> dict[str, Any]:
    """Return `padding` and `padding_mode` of a window op; `dims` and `window` (dilated) are
    spatial.
    """
    n = len(window)
    check_rank(dims, n)
    if padding == "VALID":
        return {"padding": [0] * n}
    if padding == "SAME":
        if DYN in dims:
            return {"padding": [0] * n, "padding_mode": "same_upper"}
        begin, end = same_pads(b, dims, window, stride)
    elif padding == "EXPLICIT":
        if len(explicit) != 2 * (n + 2) or any(p < 0 for p in explicit):
            raise ModelError(
                f"explicit_paddings expected {2 * n + 4} numbers, got {list(explicit)}"
            )
        first = 2 if last else 4
        pairs = [(explicit[first + 2 * i], explicit[first + 2 * i + 1]) for i in range(n)]
        if sum(explicit) != sum(sum(p) for p in pairs):
            raise NotSupported("padding of the batch or the channels")
        begin, end = [p for p, _ in pairs], [q for _, q in pairs]
    else:
        raise ModelError(f"attribute 'padding' has unknown value {padding}")
    return {"padding": begin if begin == end else [*begin, *end]}


def check_rank(dims: Sequence[Extent], count: int) -> None:
    """Raise ModelError if the rank is not that of a window with `count` spatial axes."""
    if len(dims) != count:
        raise ModelError(f"input expected rank {count + 2}, got {len(dims) + 2}")


def same_pads(
    b: Builder, dims: Sequence[Extent], window: Sequence[int], stride: Sequence[int]
) -> tuple[list[Any], list[Any]]:
    """Return SAME padding before and after, an Extent per axis: ceil(dim / stride) results."""
    check_rank(dims, len(window))
    counts = [quotient(b, plus(b, d, s - 1), s) for d, s in zip(dims, stride, strict=True)]
    axes = zip(dims, counts, stride, window, strict=True)
    begin, end = zip(*(same_padding(b, *axis) for axis in axes), strict=True)
    return list(begin), list(end)


def window_ends(window: Sequence[int], starts: Sequence[int]) -> list[int]:
    """Return the ends of the elements that taps at `starts` read in all windows, counted from the
    back.
    """
    behind = [w - s - 1 for w, s in zip(window, starts, strict=True)]
    return [-n if n else _FAR for n in behind]

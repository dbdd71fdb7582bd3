"""Windows along axes of dynamic extent: SAME padding, and indices of maxima."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.records import dataclass
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import Extent, extents, plus, product, reshaped, scalar, times
from mgx_mlir.frontends.helpers import arange, compare, greater_equal, unsqueeze
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@dataclass(frozen=True)
class WindowAxis:
    """Windows along one axis: their number, their taps, and the padding before the first."""

    count: Extent
    taps: int
    stride: int
    dilation: int
    begin: Extent

    def places(self, b: Builder) -> Value:
        """Return the index of each tap of each window, {count, taps}; outside of the axis in the
        padding.
        """
        starts = b.mul(arange(b, self.count), self.stride)
        at = b.literal(np.arange(self.taps, dtype=np.int64) * self.dilation)
        starts = b.sub(starts, scalar(b, self.begin))
        return b.add(unsqueeze(b, starts, [1]), unsqueeze(b, at, [0]))


def same_padding(
    b: Builder, have: Extent, count: Extent, stride: int, window: int
) -> tuple[Extent, Extent]:
    """Return the padding of `count` windows over `have` elements; the odd one is at the end.

    window: the elements from its first tap to its last.
    """
    reach = plus(b, times(b, plus(b, count, -1), stride), window)
    if isinstance(reach, int) and isinstance(have, int):
        total = max(reach - have, 0)
        return total // 2, total - total // 2
    total = b.max(b.sub(scalar(b, reach), scalar(b, have)), 0)
    begin = b.div(total, 2)
    return begin, b.sub(total, begin)


def max_places(b: Builder, x: Value, axes: Sequence[WindowAxis], *, column_major: bool) -> Value:
    """Return the index of each window's first maximum in its plane of `x` {N, C, spatial}.

    column_major: indices in a plane run along its first axis first.
    """
    n, own = len(axes), extents(b, x)
    known = [a.count for a in axes if isinstance(a.count, int)]
    limits.table((*known, *(a.taps for a in axes)), "places in windows", 24)
    valid, windows = None, x
    for i, axis in enumerate(axes):
        places, d = axis.places(b), scalar(b, own[i + 2])
        flat = b.reshape(b.min(b.max(places, 0), b.sub(d, 1)), dims=[-1])
        windows = b.gather(windows, flat, axis=i + 2)
        inside = b.logical_and(greater_equal(b, places, 0), compare(b, "less", places, d))
        inside = unsqueeze(b, inside, [k for k in range(2 * n) if k not in (i, n + i)])
        valid = inside if valid is None else b.logical_and(valid, inside)
    pairs = [e for a in axes for e in (a.count, a.taps)]
    order = [0, 1, *(2 + 2 * i for i in range(n)), *(3 + 2 * i for i in range(n))]
    windows = b.transpose(reshaped(b, windows, [*own[:2], *pairs]), permutation=order)
    dtype, taps = b.dtype(x), [a.taps for a in axes]
    windows = b.where(valid, windows, b.literal(np.array(dtype.lowest(), dtype.np)))
    counts = [a.count for a in axes]
    best = b.argmax(reshaped(b, windows, [*own[:2], *counts, math.prod(taps)]), axis=2 + n)
    best = b.squeeze(best, axes=[2 + n])
    place = b.literal(np.int64(0))
    for i, axis in enumerate(axes):
        tap = b.mod(b.div(best, math.prod(taps[i + 1 :])), taps[i])
        starts = b.sub(b.mul(arange(b, axis.count), axis.stride), scalar(b, axis.begin))
        at = b.add(unsqueeze(b, starts, range(1, n - i)), b.mul(tap, axis.dilation))
        steps = product(b, own[2 : 2 + i] if column_major else own[3 + i :])
        place = b.add(place, b.mul(at, scalar(b, steps)))
    return place

"""Statistics of calibrated values, and the choice of a range for 8 bits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mgx_mlir.core.errors import UsageError

METHODS = ("minmax", "percentile", "entropy", "mse")
_BINS = 4096  # bins of a histogram, an even number
_LEVELS = 128  # steps per sign in 8 bits, by which "entropy" judges a threshold
_CANDIDATES = 64  # thresholds compared by "entropy" and "mse"
_LEAST = 0.05  # least threshold, as a share of the largest magnitude

Range = tuple[float, float]


@dataclass
class ChannelSums:
    """Mean, minimum and maximum of each channel along one axis."""

    sums: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    count: int = 0

    @property
    def largest(self) -> np.ndarray:
        """Return the largest magnitudes."""
        return np.maximum(np.abs(self.lowest), np.abs(self.highest))

    @property
    def means(self) -> np.ndarray:
        return self.sums / max(self.count, 1)


@dataclass
class Observer:
    """Minimum, maximum, a histogram, and per-channel sums along the requested axes.

    NaN and infinities are ignored. The histogram spans [-top, top] in equal bins; for a greater
    magnitude, bins are merged in pairs until it fits.
    """

    axes: frozenset[int] = frozenset()
    lowest: float = math.inf
    highest: float = -math.inf
    count: int = 0
    top: float = 0.0
    bins: np.ndarray = field(default_factory=lambda: np.zeros(_BINS, np.int64))
    channels: dict[int, ChannelSums] = field(default_factory=dict)

    def add(self, array: np.ndarray) -> None:
        """Add the elements of one more array."""
        x = array.astype(np.float32, copy=False)
        finite = np.isfinite(x)
        if not finite.all():
            x = np.where(finite, x, np.float32(0))
        if not x.size or not finite.any():
            return
        self.lowest = min(self.lowest, float(x.min()))
        self.highest = max(self.highest, float(x.max()))
        self._fit(max(-self.lowest, self.highest))
        self.count += x.size
        if self.top:
            places = ((x.reshape(-1) / self.top + 1) * (_BINS // 2)).astype(np.int64)
            self.bins += np.bincount(np.clip(places, 0, _BINS - 1), minlength=_BINS)
        for axis in self.axes:
            self._add_channels(x, axis)

    def _fit(self, magnitude: float) -> None:
        if not self.top:
            self.top = magnitude
            self.bins[_BINS // 2] = self.count  # all earlier elements were 0
        while self.top < magnitude:
            half = self.bins.reshape(-1, 2).sum(1)
            self.bins[...] = 0
            self.bins[_BINS // 4 : 3 * _BINS // 4] = half
            self.top *= 2

    def _add_channels(self, x: np.ndarray, axis: int) -> None:
        if not -x.ndim <= axis < x.ndim:
            return
        moved = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        sums = moved.sum(0, dtype=np.float64)
        lowest, highest = (np.asarray(f(0), np.float64) for f in (moved.min, moved.max))
        known = self.channels.get(axis)
        if known is None:
            self.channels[axis] = ChannelSums(sums, lowest, highest, len(moved))
        elif known.sums.shape == sums.shape:
            known.sums += sums
            known.lowest = np.minimum(known.lowest, lowest)
            known.highest = np.maximum(known.highest, highest)
            known.count += len(moved)

    def range(self, method: str, percentile: float = 99.99) -> Range | None:
        """Return the range to represent, None without an element.

        minmax: the whole range. percentile: that share of the elements, cut equally at both ends.
        entropy: the magnitude whose 128 steps lose the least information (Kullback-Leibler), as in
        TensorRT. mse: the magnitude with the least mean squared error of rounding and clipping in
        255 steps.
        """
        if method not in METHODS:
            raise UsageError(f"unknown method '{method}'", notes=[f"one of {', '.join(METHODS)}"])
        if not 50 < percentile <= 100:
            raise UsageError(f"percentile expected a number in (50, 100], got {percentile}")
        if not self.count:
            return None
        if method == "minmax" or not self.top:
            return self.lowest, self.highest
        if method == "percentile":
            return self._percentile(percentile)
        magnitude = self._by_entropy() if method == "entropy" else self._by_squares()
        return max(self.lowest, -magnitude), min(self.highest, magnitude)

    def _percentile(self, percentile: float) -> Range:
        share = (100 - percentile) / 200
        total = np.cumsum(self.bins)
        edges = np.linspace(-self.top, self.top, _BINS + 1)
        low = int(np.searchsorted(total, share * self.count, "right"))
        high = int(np.searchsorted(total, (1 - share) * self.count, "left"))
        return (
            max(self.lowest, float(edges[low])),
            min(self.highest, float(edges[min(high + 1, _BINS)])),
        )

    def _magnitudes(self) -> np.ndarray:
        """Return the histogram of magnitudes: bin i spans [i, i+1) of _BINS/2 parts of `top`."""
        return self.bins[_BINS // 2 :] + self.bins[: _BINS // 2][::-1]

    def _candidates(self) -> np.ndarray:
        largest = max(-self.lowest, self.highest)
        return np.linspace(_LEAST, 1, _CANDIDATES) * largest

    def _by_squares(self) -> float:
        """Return the mean squared error of rounding and clipping for each threshold.

        With a zero point a one-sided range has twice the steps, which does not change the order of
        thresholds.
        """
        weights = self._magnitudes()
        values = (np.arange(_BINS // 2) + 0.5) * (self.top * 2 / _BINS)
        errors: list[float] = []
        for threshold in self._candidates():
            step = threshold / 127
            clipped = np.maximum(values - threshold, 0)
            inside = values <= threshold
            # within a bin that is wider than a step, or between codes, the error is uniform
            errors.append(float((weights * np.where(inside, step**2 / 12, clipped**2)).sum()))
        return float(self._candidates()[int(np.argmin(errors))])

    def _by_entropy(self) -> float:
        weights = self._magnitudes().astype(np.float64)
        # 0 is exact at any scale; the many zeros after a ReLU would outweigh all other elements
        weights[0] = weights[1]
        width = self.top * 2 / _BINS
        best, found = math.inf, self.top
        for threshold in self._candidates():
            kept = min(len(weights), max(_LEVELS, math.ceil(threshold / width)))
            p = weights[:kept].copy()
            q = _merged(p, _LEVELS)
            p[-1] += weights[kept:].sum()
            divergence = _divergence(p, q)
            if divergence < best:
                best, found = divergence, float(threshold)
        return found


def _merged(p: np.ndarray, levels: int) -> np.ndarray:
    """Return a histogram after quantisation: equal counts among values of one level."""
    level = np.arange(len(p)) * levels // len(p)
    total = np.bincount(level, p, levels)
    used = np.bincount(level, p > 0, levels)
    each = np.divide(total, used, out=np.zeros(levels), where=used > 0)
    return np.where(p > 0, each[level], 0.0)


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Return the smoothed Kullback-Leibler divergence of two histograms."""
    p, q = p / max(p.sum(), 1e-30), q / max(q.sum(), 1e-30)
    there = p > 0
    return float((p[there] * np.log(p[there] / np.maximum(q[there], 1e-9))).sum())

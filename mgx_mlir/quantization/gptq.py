"""4-bit codes of a matmul's weights that compensate each other's rounding, based on its inputs.

After Frantar et al., GPTQ (2023): the weights are rounded one input after the other. The resulting
error is compensated by the weights not rounded yet, as far as the inputs are correlated on the
samples. The correlations are the sums of the inputs' products.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.passes.quantize_int4 import Grid, grid_of

_BLOCK = 128  # inputs whose changes are applied to later inputs at once
# damping, as a share of the inputs' mean square, so that unseen inputs are not relied on
_DAMPING = 0.01
_PARTS = np.linspace(1, 0.6, 9)  # candidate shares of the weights' range that a scale spans


@dataclass
class SecondMoments:
    """Sums of products of an operand's columns over all its rows: x^T x."""

    sums: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def add(self, array: np.ndarray) -> None:
        """Add the rows of one more array, without rows of NaN or infinities."""
        x = array.reshape(-1, array.shape[-1]).astype(np.float32)
        x = x[np.isfinite(x).all(1)]
        self.sums = self.sums + x.T @ x if self.sums.size else x.T @ x

    def error(self, change: np.ndarray) -> np.ndarray:
        """Return the squared error of the matmul by column, for a change of the weights."""
        return np.maximum((change * (self.sums @ change)).sum(0), 0)


def compensated(
    w: np.ndarray, moments: SecondMoments, group: int, dtype: np.dtype[Any]
) -> tuple[Grid, np.ndarray]:
    """Choose scales and codes of weights (inputs, outputs) that minimise the matmul's error.

    group: neighbouring inputs that share a scale of type `dtype`. On the samples no column has a
    larger error than with rounding to nearest, which columns without a gain keep.
    """
    w = np.nan_to_num(w.astype(np.float32))
    plain = grid_of(w, group, dtype)
    codes = plain.codes_of(w)
    factor = _factor(moments.sums)
    if factor is None:
        return plain, codes
    grid = _weighed_grid(w, plain, np.diag(moments.sums), dtype)
    found = _rounded(w, grid, *factor)
    better = moments.error(grid.restored(found) - w) < moments.error(plain.restored(codes) - w)
    step, zero = (np.where(better, a, b) for a, b in ((grid.step, plain.step),
                                                      (grid.zero, plain.zero)))  # fmt: skip
    return Grid(step, zero, group), np.where(better, found, codes)


def _weighed_grid(w: np.ndarray, plain: Grid, power: np.ndarray, dtype: np.dtype[Any]) -> Grid:
    """Choose each scale's part of its range with the least error, weighted by the inputs' power."""
    groups = (len(w) // plain.group, plain.group, w.shape[1])
    step, zero, least = plain.step, plain.zero, np.full((groups[0], 1, groups[2]), np.inf)
    for part in _PARTS:
        grid = grid_of(w, plain.group, dtype, float(part))
        off = (grid.restored(grid.codes_of(w)) - w) ** 2 * power[:, None]
        error = off.reshape(groups).sum(1, keepdims=True)
        better = error < least
        step, zero = np.where(better, grid.step, step), np.where(better, grid.zero, zero)
        least = np.minimum(error, least)
    return Grid(step, zero, plain.group)


def _factor(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the order of the inputs, the strongest first, and the factor U of their inverse.

    U is upper triangular, and U^T U the inverse of the damped sums. None if all inputs are 0, if
    there was no sample, or if the inverse is not finite.
    """
    power = np.diag(sums).astype(np.float64)
    if not power.size or not np.isfinite(power).all() or not power.any():
        return None
    order = np.argsort(-power, kind="stable")
    damped = sums[np.ix_(order, order)].astype(np.float64)
    damped[np.diag_indices(len(damped))] += _DAMPING * power.mean()
    try:
        upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    except np.linalg.LinAlgError:
        return None
    return (order, upper.astype(np.float32)) if np.isfinite(upper).all() else None


def _rounded(w: np.ndarray, grid: Grid, order: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Round the weights of one input after the other; later ones compensate the error."""
    groups = order // grid.group
    step = grid.step[:, 0].astype(np.float32)[groups]
    zero = grid.zero[:, 0].astype(np.float32)[groups]
    left, codes = w[order], np.empty(w.shape, np.uint8)
    for start in range(0, len(w), _BLOCK):
        end = min(start + _BLOCK, len(w))
        errors = np.empty((end - start, w.shape[1]), np.float32)
        for i in range(start, end):
            row = np.clip(np.rint(left[i] / step[i]) + zero[i], 0, 15)
            codes[order[i]] = row
            errors[i - start] = (left[i] - (row - zero[i]) * step[i]) / upper[i, i]
            left[i + 1 : end] -= np.outer(upper[i, i + 1 : end], errors[i - start])
        left[end:] -= upper[start:end, end:].T @ errors
    return codes

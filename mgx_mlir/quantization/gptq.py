"""4-bit codes of a product's weights that compensate each other's rounding, by its inputs.

After Frantar et al., GPTQ (2023): the inputs' weights are rounded one after the other, and what a
rounding changes in the product is compensated by the weights that are not rounded yet, as far as
the inputs of the samples go together. How far they do is in the sums of their products.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.passes.quantize_int4 import Grid, grid_of

_BLOCK = 128  # inputs whose changes are applied to later inputs at once
_DAMPING = 0.01  # share of the inputs' mean square: unseen inputs are not relied on
_PARTS = np.linspace(1, 0.6, 9)  # shares of the range of weights that a scale may span


@dataclass
class SecondMoments:
    """Sums of products of an operand's columns over all of its rows: x^T x."""

    sums: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def add(self, array: np.ndarray) -> None:
        """Take the rows of one more array into account, but for those with NaN or infinities."""
        x = array.reshape(-1, array.shape[-1]).astype(np.float32)
        x = x[np.isfinite(x).all(1)]
        self.sums = self.sums + x.T @ x if self.sums.size else x.T @ x

    def error(self, change: np.ndarray) -> np.ndarray:
        """Return the squared error of the product by column, for a change of the weights."""
        return np.maximum((change * (self.sums @ change)).sum(0), 0)


def compensated(
    w: np.ndarray, moments: SecondMoments, group: int, dtype: np.dtype[Any]
) -> tuple[Grid, np.ndarray]:
    """Choose scales and codes of weights (inputs, outputs) by what they change in the product.

    group: neighbours along the inputs that share a scale of the type `dtype`. On the samples no
    column of the product is further off than by rounding to nearest, which is what columns stay at
    where nothing is gained.
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
    """Choose for each scale the part of its range with the least error, weighed by the inputs'
    power.
    """
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

    U is upper triangular, and U^T U the inverse of the damped sums. None where inputs are all 0,
    where no sample was seen, or where the numbers do not hold the inverse.
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

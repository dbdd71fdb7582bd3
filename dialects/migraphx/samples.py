"""Arrays for the operators' `examples()`: fixed, small, without zeros or ties by accident."""

from __future__ import annotations

from typing import Any

import numpy as np

# (one entry per operand group: array, list of arrays or None; attributes)
Example = tuple[tuple[Any, ...], dict[str, Any]]


def floats(*dims: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Normal values, the same for the same dims and seed."""
    rng = np.random.default_rng([seed, *dims])
    return rng.standard_normal(dims).astype(dtype)


def ints(
    *dims: int, low: int = -10, high: int = 10, seed: int = 0, dtype: Any = np.int64
) -> np.ndarray:
    """Uniform integers in [low, high)."""
    rng = np.random.default_rng([seed, *dims])
    return rng.integers(low, high, dims).astype(dtype)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def example(*operands: Any, **attributes: Any) -> Example:
    return tuple(operands), attributes

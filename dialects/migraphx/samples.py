"""Arrays for the operators' `examples()`: fixed, small, without accidental zeros or ties."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

# (one entry per operand group: array, list of arrays or None; attributes)
Example = tuple[tuple[Any, ...], dict[str, Any]]

_draw: ContextVar[int] = ContextVar("_draw", default=0)


@contextmanager
def redrawn(draw: int) -> Generator[None]:
    """Context manager: draw other random values in examples for each `draw`; 0: the usual ones.

    Dims, types, attributes and explicit values do not change.
    """
    token = _draw.set(draw)
    try:
        yield
    finally:
        _draw.reset(token)


def generator(seed: int, dims: tuple[int, ...]) -> np.random.Generator:
    """Return the random generator for an array of these dims."""
    draw = _draw.get()
    return np.random.default_rng([seed, *dims, *([draw] if draw else [])])


def floats(*dims: int, seed: int = 0, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return normal values, which depend only on dims and seed."""
    return generator(seed, dims).standard_normal(dims).astype(dtype)


def ints(
    *dims: int, low: int = -10, high: int = 10, seed: int = 0, dtype: DTypeLike = np.int64
) -> np.ndarray:
    """Return uniform integers in [low, high)."""
    return generator(seed, dims).integers(low, high, dims).astype(dtype)


def i64(*values: int) -> np.ndarray:
    """Return a 1-D i64 array."""
    return np.array(values, np.int64)


def example(*operands: object, **attributes: object) -> Example:
    """Return an example: an entry per operand (array, list of arrays, None), and attributes."""
    return tuple(operands), attributes

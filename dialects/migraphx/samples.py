"""Arrays for the operators' `examples()`: fixed, small, without zeros or ties by accident."""

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
    """Inside, the values that examples draw are others for each `draw`; 0: the usual ones.

    Their dims, types and attributes, and what they write out by hand, stay as they are.
    """
    token = _draw.set(draw)
    try:
        yield
    finally:
        _draw.reset(token)


def generator(seed: int, dims: tuple[int, ...]) -> np.random.Generator:
    """Return the random numbers that an array of these dims is drawn from."""
    draw = _draw.get()
    return np.random.default_rng([seed, *dims, *([draw] if draw else [])])


def floats(*dims: int, seed: int = 0, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return normal values, the same for the same dims and seed."""
    return generator(seed, dims).standard_normal(dims).astype(dtype)


def ints(
    *dims: int, low: int = -10, high: int = 10, seed: int = 0, dtype: DTypeLike = np.int64
) -> np.ndarray:
    """Uniform integers in [low, high)."""
    return generator(seed, dims).integers(low, high, dims).astype(dtype)


def i64(*values: int) -> np.ndarray:
    """Return a 1-D i64 array."""
    return np.array(values, np.int64)


def example(*operands: object, **attributes: object) -> Example:
    """Return an example: an entry per operand (array, list of arrays, None), and attributes."""
    return tuple(operands), attributes

"""Host memory a device can use in place: 64-byte aligned arrays, arrays that own memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


def address(a: np.ndarray) -> int:
    """Return the address of an array's first element."""
    return a.__array_interface__["data"][0]


def writable_address(a: np.ndarray) -> int:
    """Return the address of an array of a plain type without gaps, which may be written to."""
    held: Any = a  # a buffer, which its stub does not say
    return ctypes.addressof(ctypes.c_char.from_buffer(held))  # a third of the time of `address`


def span(a: np.ndarray) -> tuple[int, int]:
    """Return the addresses of an array without gaps."""
    begin = address(a)
    return begin, begin + a.nbytes


def owned_array(
    begin: int, size: int, dtype: np.dtype, shape: tuple[int, ...], *keep: Any
) -> np.ndarray:
    """Return an array over foreign memory that keeps its owners alive, through views too.

    numpy collapses the chain of bases down to the first object that is not an array: here that is
    the ctypes object which holds `keep`.
    """
    memory = (ctypes.c_char * size).from_address(begin)
    memory.keep = keep  # type: ignore[attr-defined]
    return np.ndarray(shape, dtype, memoryview(memory))

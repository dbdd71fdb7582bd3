"""Host memory a device can use in place: 64-byte aligned arrays, arrays that own memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mgx_mlir.core import interrupts


def address(a: np.ndarray) -> int:
    """Return the address of an array's first element."""
    try:
        return writable_address(a)
    except (TypeError, ValueError) as e:
        if interrupts.is_callers(e):
            raise
        # read-only, with gaps, empty, or of no type of numpy's own
        return a.__array_interface__["data"][0]


def writable_address(a: np.ndarray) -> int:
    """Return the address of an array of a plain type without gaps, which may be written to."""
    held: Any = a  # a buffer, which its stub does not say
    return ctypes.addressof(ctypes.c_char.from_buffer(held))  # a third of the time of `address`


def span(a: np.ndarray) -> tuple[int, int]:
    """Return the addresses of an array without gaps."""
    begin = address(a)
    return begin, begin + a.nbytes


def writable_view(a: np.ndarray) -> np.ndarray:
    """Return an array without gaps as one that may be written to, over the same memory.

    Who uses it keeps `a`, and writes nothing where `a` is not to be written to.
    """
    if a.flags.writeable:
        return a
    memory = (ctypes.c_char * a.nbytes).from_address(address(a))
    return np.ndarray(a.shape, a.dtype, memoryview(memory))

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
        # read-only, strided, empty, or of a type that numpy lacks
        return a.__array_interface__["data"][0]


def writable_address(a: np.ndarray) -> int:
    """Return the address of an array of a plain type without gaps, which may be written to."""
    held: Any = a  # the stub lacks the buffer protocol
    return ctypes.addressof(ctypes.c_char.from_buffer(held))  # a third of the time of `address`


def span(a: np.ndarray) -> tuple[int, int]:
    """Return the addresses of an array without gaps."""
    begin = address(a)
    return begin, begin + a.nbytes


def writable_view(a: np.ndarray) -> np.ndarray:
    """Return a writable array over the memory of an array without gaps.

    The caller keeps `a` alive, and does not write where `a` is read-only.
    """
    if a.flags.writeable:
        return a
    memory = (ctypes.c_char * a.nbytes).from_address(address(a))
    return np.ndarray(a.shape, a.dtype, memoryview(memory))

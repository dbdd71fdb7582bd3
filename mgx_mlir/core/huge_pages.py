"""Memory in large pages for weights: a call that reads all of them has fewer TLB misses.

A matrix-vector product is bound by memory bandwidth. In a virtual machine a core reads a fifth less
per second from pages of 4 KB than from pages of 2 MB.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np

PAGE = 2 << 20
_CHUNK = 16 * PAGE  # bytes of a piece that small arrays share
_APART = 64  # alignment of arrays in bytes


def huge_empty(nbytes: int) -> np.ndarray:
    """Return uninitialised bytes, aligned to a large page where the system has them."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(nbytes, np.uint8)
    # slack for the alignment is never touched; shared memory has small pages
    held = mmap.mmap(-1, nbytes + PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    raw = np.frombuffer(held, np.uint8)
    start = -raw.ctypes.data % PAGE
    # a large page for the last bytes would be resident as a whole
    whole = nbytes - nbytes % PAGE
    with contextlib.suppress(OSError):  # a kernel without large pages: small ones work too
        held.madvise(mmap.MADV_HUGEPAGE, start, whole)
    return raw[start : start + nbytes]


def release_pages(array: np.ndarray) -> None:
    """Release the pages of the file's mapping that an array lies in; reading maps them again."""
    found: Any = array
    while isinstance(found, np.ndarray):
        found = found.base
    held = getattr(found, "obj", found)
    if not isinstance(held, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = array.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    start = begin - begin % mmap.PAGESIZE
    held.madvise(mmap.MADV_DONTNEED, start, begin + array.nbytes - start)


class HugePages:
    """An allocator that puts arrays one after the other in large pages; they are freed with
    their last array.

    sizes: bytes of each array, where they are known: these take no more memory than that.
    """

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        known = sum(map(_room, sizes))
        self._left = huge_empty(known) if known else np.empty(0, np.uint8)

    def placed(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of an array in large pages."""
        out = self.empty(array.shape, array.dtype)
        out[...] = array
        return out

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return an uninitialised array in large pages."""
        return self._empty(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)

    def _empty(self, nbytes: int) -> np.ndarray:
        room = _room(nbytes)
        if room > self._left.nbytes:
            if room >= _CHUNK // 2:
                return huge_empty(nbytes)
            self._left = huge_empty(_CHUNK)
        found, self._left = self._left[:nbytes], self._left[room:]
        return found


def _room(nbytes: int) -> int:
    """Return the bytes of an array and of the gap behind it."""
    return -(-nbytes // _APART) * _APART

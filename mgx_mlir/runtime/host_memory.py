"""Weights that IREE reads in place, without holding a Python object.

IREE's workers release a call's buffers after its results are complete, and the last release frees
the memory's owner. A worker does not hold the GIL, so a Python owner would be freed without it.
Here one permanent handle spans the process's memory, and every parameter is a part of it. So
workers release only IREE objects, and the owner of the weights keeps them until no call can read
them.
"""

from __future__ import annotations

import ctypes
import time
from collections import deque
from typing import Any

import numpy as np

from mgx_mlir.core import forks
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.code_memory import keep_forever

_FIRST = 64  # an address below all memory, aligned as weights are
_LENGTH = 1 << 62
# A failed call may leave kernels running, and nothing reports their end.
_KEPT = 60.0

_lock = forks.lock()
_handle: Any = None
_failed: deque[tuple[float, Any]] = deque()


def add_parameter(index: Any, key: str, data: np.ndarray) -> None:
    """Add an aligned array to a parameter index of a local device; the caller keeps its memory."""
    global _handle
    with _lock:
        if _handle is None:
            import iree.runtime as rt  # the runtime takes long to load, and only calls need it

            span = (ctypes.c_char * _LENGTH).from_address(_FIRST)
            _handle = rt.FileHandle.wrap_memory(span)
            keep_forever(_handle)
    offset = address(data) - _FIRST if data.size else 0
    index.add_from_file_handle(key, _handle, data.nbytes, offset)


def keep_after_failure(*memory: Any) -> None:
    """Keep memory that a failed call may still read, for a minute."""
    _failed.append((time.monotonic() + _KEPT, memory))
    drop_old()


def drop_old() -> None:
    """Release memory of calls that failed more than a minute ago."""
    now, dropped = time.monotonic(), []
    # the garbage collector may call this while the lock is held
    if not _lock.acquire(blocking=False):
        return
    try:
        while _failed and _failed[0][0] < now:
            dropped.append(_failed.popleft())
    finally:
        _lock.release()

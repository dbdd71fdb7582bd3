"""Weights that IREE reads where they lie, of which it holds nothing that is Python's.

IREE's workers let go of a call's buffers after its results are there, and whoever lets go last
frees what is behind them. A worker does not hold Python's lock, so that a buffer of Python behind
the weights could be freed without it. Here one handle spans the memory of the process, lives for
ever, and every parameter is a part of it: what a worker lets go of is IREE's alone, and the
owner of the weights keeps them until no call can read them.
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

_FIRST = 64  # no memory is below it, and it is aligned as weights are
_LENGTH = 1 << 62
# A call that fails may leave kernels that run on. They end by themselves; nothing says when.
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
    """Keep what a failed call may still read, for a minute."""
    _failed.append((time.monotonic() + _KEPT, memory))
    drop_old()


def drop_old() -> None:
    """Let go of what failed calls read more than a minute ago."""
    now, dropped = time.monotonic(), []
    if not _lock.acquire(blocking=False):  # the collector may call this where it is taken
        return
    try:
        while _failed and _failed[0][0] < now:
            dropped.append(_failed.popleft())
    finally:
        _lock.release()

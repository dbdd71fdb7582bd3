"""The memory of programs' code at interpreter exit.

Code is in Python's memory, and IREE acquires the GIL to release it. The last owner of a program
does so: mostly a worker, shortly after the last call. An interpreter that exits meanwhile
terminates a thread that waits for the GIL inside noexcept code, and the process aborts. So the exit
waits for the code of closed programs, and the code of open programs is never released.
"""

from __future__ import annotations

import atexit
import ctypes
import time
import weakref
from collections import deque
from typing import Any

import numpy as np

from mgx_mlir.core import forks
from mgx_mlir.core.literals import aligned_copy

_LONGEST = 2.0  # seconds; calls that other threads make meanwhile may take any time

# code of closed programs, each with its fork count: a child lacks its parent's workers
_closed: deque[tuple[weakref.ref[memoryview], int]] = deque()
_open: weakref.WeakSet[Code] = weakref.WeakSet()


class Code:
    """An IREE module and its memory.

    data: the file's bytes. They are copied: a worker that releases a mapped file drops the GIL to
    unmap it, and must acquire it again.
    """

    def __init__(self, rt: Any, instance: Any, data: np.ndarray) -> None:
        held: Any = aligned_copy(data)  # a buffer, which its stub does not say
        self._memory: memoryview | None = memoryview(held)
        self.module: Any = rt.VmModule.wrap_buffer(instance, self._memory)
        self._stays = False
        _open.add(self)

    def close(self) -> None:
        """Release the code; calls may still be ending."""
        _open.discard(self)
        if self._memory is not None and not self._stays:
            _forget()
            _closed.append((weakref.ref(self._memory), forks.count()))
        self._memory = self.module = None

    def stay(self) -> None:
        """Never release the code."""
        if self.module is not None and not self._stays:
            self._stays = True
            keep_forever(self.module)


def keep_forever(held: object) -> None:
    """Keep an object of the binding alive beyond interpreter exit."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


@atexit.register
def settle(longest: float = _LONGEST) -> bool:
    """Wait until workers have released the code of closed programs, `longest` seconds at most.

    Open programs can still be used. Return whether all code is released.
    """
    for code in list(_open):
        code.stay()
    end = time.monotonic() + longest
    while _forget():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)  # releases the GIL
    return True


def _forget() -> int:
    """Drop released code; return the number of others."""
    here = forks.count()
    for _ in range(len(_closed)):
        try:
            each = _closed.popleft()
        except IndexError:  # another thread does the same
            break
        if each[1] == here and each[0]() is not None:
            _closed.append(each)
    return len(_closed)

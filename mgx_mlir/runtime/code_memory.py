"""The code of programs, and the end of the interpreter.

Code lies in Python's memory, and IREE takes Python's lock to give it back. That is done by who lets
go of a program last: mostly a worker, a moment after the results of its last call are there. An
interpreter that ends meanwhile ends such a thread where it waits for the lock, in code that must
not be left so: the process aborts, after a run that was right. So the interpreter waits for the
code of programs that were closed, and the code of the others is never given back.
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

# code of closed programs, each with its fork: a child has none of its parent's workers
_closed: deque[tuple[weakref.ref[memoryview], int]] = deque()
_open: weakref.WeakSet[Code] = weakref.WeakSet()


class Code:
    """A module of IREE's, and its memory.

    data: the file's bytes. They are copied: a worker that gives back a file's memory leaves
    Python's lock to unmap it, and must come back for it.
    """

    def __init__(self, rt: Any, instance: Any, data: np.ndarray) -> None:
        held: Any = aligned_copy(data)  # a buffer, which its stub does not say
        self._memory: memoryview | None = memoryview(held)
        self.module: Any = rt.VmModule.wrap_buffer(instance, self._memory)
        self._stays = False
        _open.add(self)

    def close(self) -> None:
        """Let go of the code; calls may still be ending."""
        _open.discard(self)
        if self._memory is not None and not self._stays:
            _forget()
            _closed.append((weakref.ref(self._memory), forks.count()))
        self._memory = self.module = None

    def stay(self) -> None:
        """Never give the code back."""
        if self.module is not None and not self._stays:
            self._stays = True
            keep_forever(self.module)


def keep_forever(held: object) -> None:
    """Keep an object of the binding beyond the interpreter's end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


@atexit.register
def settle(longest: float = _LONGEST) -> bool:
    """Wait until workers have given back the code of closed programs, `longest` seconds at most.

    Programs that are open can be used on. Returns whether all code is back.
    """
    for code in list(_open):
        code.stay()
    end = time.monotonic() + longest
    while _forget():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)  # without Python's lock
    return True


def _forget() -> int:
    """Forget the code that is back; return how many are not."""
    here = forks.count()
    for _ in range(len(_closed)):
        try:
            each = _closed.popleft()
        except IndexError:  # another thread does the same
            break
        if each[1] == here and each[0]() is not None:
            _closed.append(each)
    return len(_closed)

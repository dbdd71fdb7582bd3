"""Settings of malloc that keep freed memory in the process, for the next call.

On several threads the runtime allocates intermediate values by malloc, and frees them after the
call. glibc maps blocks above a threshold, and unmaps them when they are freed. It raises the
threshold to a freed block's size, but not beyond 32 MB. Each larger block would cost a page fault
per 4 KB in every call: U-Net, with 75 MB of images, took a quarter longer.

With dynamic dims one thread allocates by malloc, too: the runtime keeps at most 64 free blocks, and
reuses one only for exactly its size. glibc then returns the free end of the heap at twice the
largest block, which a call's blocks exceed. A convolutional network took 1.5 times onnxruntime's
time instead of 1.0.
"""

from __future__ import annotations

import ctypes
import platform
import threading

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_KEPT_ALREADY = 32 << 20
OPEN = 128 << 20  # bytes of a block of a program with dynamic dims, an assumption
_SPARE = 1 << 20  # bytes of overhead of malloc and the runtime

_lock = threading.Lock()
_largest = _KEPT_ALREADY


def keep(size: int) -> None:
    """Keep freed blocks of up to `size` bytes, as malloc does up to 32 MB; never lower the
    limit.
    """
    global _largest
    with _lock:
        if size + _SPARE <= _largest or platform.libc_ver()[0] != "glibc":
            return
        _largest = size + _SPARE
        mallopt = ctypes.CDLL(None).mallopt
        # glibc's rule for smaller ones: twice as much may be free at the end of the heap
        mallopt(_TRIM_THRESHOLD, min(2 * _largest, 2**31 - 1))
        mallopt(_MMAP_THRESHOLD, min(_largest, 2**31 - 1))

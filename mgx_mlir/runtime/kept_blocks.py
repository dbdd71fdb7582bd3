"""Memory that a call frees stays with the process, so that the next call finds it.

On several threads the runtime takes what a call needs in between from malloc, and frees it behind
the call. glibc maps blocks above a size one by one and returns them to the system; it raises that
size to a block's own when one is freed, but not beyond 32 MB. Of a larger block each call would pay
for a page fault every 4 KB: U-Net, whose images take 75 MB, needed a quarter longer.

With dynamic dims a call takes from malloc on one thread, too, as soon as 64 blocks of other sizes
are free: the runtime keeps no more, looks for one of exactly the size, and lets go of none. glibc
then gives the free end of the heap back once it is twice the largest block, which several blocks of
one call are: a net of convolutions took 1.5 of onnxruntime's time in place of 1.0.
"""

from __future__ import annotations

import ctypes
import platform
import threading

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_KEPT_ALREADY = 32 << 20
OPEN = 128 << 20  # bytes of a block of a program with dynamic dims, whose sizes a run decides
_SPARE = 1 << 20  # bytes of malloc and the runtime, beside those asked for

_lock = threading.Lock()
_largest = _KEPT_ALREADY


def keep(size: int) -> None:
    """Let blocks of up to `size` bytes stay, as those of up to 32 MB do; never fewer."""
    global _largest
    with _lock:
        if size + _SPARE <= _largest or platform.libc_ver()[0] != "glibc":
            return
        _largest = size + _SPARE
        mallopt = ctypes.CDLL(None).mallopt
        # glibc's rule for smaller ones: twice as much may be free at the end of the heap
        mallopt(_TRIM_THRESHOLD, min(2 * _largest, 2**31 - 1))
        mallopt(_MMAP_THRESHOLD, min(_largest, 2**31 - 1))

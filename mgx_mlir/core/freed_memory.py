"""Memory that a compile has freed, released to the system: the C library keeps it for later.

Weights that a pass folds, or that a kernel reads in another layout, leave gaps between what stays.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


@functools.cache
def _trim() -> Callable[[int], int]:
    """Return glibc's malloc_trim, which takes 0.1 to 20 ms; elsewhere what does nothing."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; TypeError: of Windows
        return lambda keep: 0


def give_back() -> None:
    """Give whole pages between allocations back to the system."""
    _trim()(0)


__all__ = ["give_back"]

"""A GPU's memory: statistics, and release of blocks that the runtime keeps for later calls.

IREE's HIP driver keeps each block that a call frees, for a later block of exactly its size, and
frees none by itself: with dynamic sizes that would fill the device. `trim` frees them all.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.device import IREE_ERRORS, Device
from mgx_mlir.runtime.gpu_calls import call, entered

# names of the out-of-memory errors of drivers and the runtime
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "OutOfMemory", "OUT_OF_MEMORY")
# share of the device that new blocks may take before a trim, and that must stay free
_SHARE = 8

T = TypeVar("T")


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of a GPU's memory.

    `total` and `free` are the driver's, of all processes. `live`: what this process's tensors,
    weights and running calls have, and IREE's staging for weights: 128 MiB of page-locked host
    memory that it takes for each device when it is opened.
    """

    total: int
    free: int
    live: int


def memory(device: Device) -> DeviceMemory:
    """Return the statistics of a GPU's memory. Errors: RunError."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call(device, "memory_info", ctypes.byref(free), ctypes.byref(total))
    counts = device.hal.allocator.statistics
    live = counts["device_bytes_allocated"] - counts["device_bytes_freed"]
    return DeviceMemory(total.value, free.value, live)


def trim(device: Device) -> None:
    """Free the blocks that the runtime keeps for later calls. Does nothing for a lost device."""
    with entered(device), contextlib.suppress(*IREE_ERRORS):
        device.hal.allocator.trim()


def is_out_of_memory(e: BaseException) -> bool:
    """Return whether an error says that a device's memory is full."""
    return isinstance(e, MemoryError) or any(name in str(e) for name in _OUT_OF_MEMORY)


def retry_trimmed(device: Device, allocate: Callable[[], T]) -> T:
    """Return the result of `allocate`; where memory is full, trim it and try once more."""
    try:
        return allocate()
    except (*IREE_ERRORS, RunError) as e:
        if device.is_local or interrupts.is_callers(e) or not is_out_of_memory(e):
            raise
    trim(device)
    return allocate()


class Watch:
    """Trims a device's memory when new sizes have filled a part of it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._seen: set[Hashable] = set()
        self._least: int | None = None  # bytes in use after the last trim, or at the first call

    def passed(self, sizes: Hashable) -> None:
        """Record a call with inputs of these sizes; known sizes return at once."""
        if sizes in self._seen:
            return
        self._seen.add(sizes)
        found = memory(self._device)
        used = found.total - found.free
        if self._least is None:
            self._least = used
        part = found.total // _SHARE
        if used - self._least <= part and found.free >= part:
            return
        trim(self._device)
        found = memory(self._device)
        self._least = found.total - found.free
        self._seen = {sizes}


__all__ = ["DeviceMemory", "Watch", "is_out_of_memory", "memory", "retry_trimmed", "trim"]

"""Streams and events of a HIP device, for callers that have no library of their own for them."""

from __future__ import annotations

import contextlib
import ctypes

from mgx_mlir.core.errors import UsageError
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.hip import check, current

_NON_BLOCKING = 1  # hipStreamNonBlocking: does not wait for the device's default stream


def priorities(device: Device) -> tuple[int, int]:
    """Return a device's least and greatest priority of a stream: of these, the lower number."""
    least, greatest = ctypes.c_int(), ctypes.c_int()
    with current(device) as library:
        status = library.hipDeviceGetStreamPriorityRange(
            ctypes.byref(least), ctypes.byref(greatest)
        )
        check(library, "hipDeviceGetStreamPriorityRange", status)
    return least.value, greatest.value


class _Held:
    """A HIP object, destroyed with its last reference."""

    _destroy = ""

    def __init__(self, device: Device, create: str, *arguments: object) -> None:
        self.device = device
        self._handle = ctypes.c_void_p()
        self._call(create, ctypes.byref(self._handle), *arguments)

    def _call(self, name: str, *arguments: object) -> None:
        with current(self.device) as library:
            check(library, name, getattr(library, name)(*arguments))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            # nobody could take an error, and HIP may be gone when the interpreter ends
            with contextlib.suppress(Exception), current(self.device) as library:
                getattr(library, self._destroy)(handle)


class Stream(_Held):
    """A stream of a device. `address` is what run_async takes. Errors of its calls: RunError.

    `priority`: within `priorities`, a lower number comes first; None: the middle, as HIP's own.
    Errors: UsageError for another one.
    """

    _destroy = "hipStreamDestroy"

    def __init__(self, device: Device, priority: int | None = None) -> None:
        if priority is None:
            super().__init__(device, "hipStreamCreateWithFlags", _NON_BLOCKING)
            return
        least, greatest = priorities(device)
        if not greatest <= priority <= least:
            raise UsageError(
                f"expected a priority from {greatest}, the first, to {least}, got {priority}"
            )
        super().__init__(device, "hipStreamCreateWithPriority", _NON_BLOCKING, priority)

    @property
    def priority(self) -> int:
        """The priority that HIP gave it."""
        found = ctypes.c_int()
        self._call("hipStreamGetPriority", self._handle, ctypes.byref(found))
        return found.value

    @property
    def address(self) -> int:
        """The ihipStream_t."""
        return self._handle.value or 0

    def synchronize(self) -> None:
        """Wait until all that was asked of it is done."""
        self._call("hipStreamSynchronize", self._handle)

    def wait(self, event: Event) -> None:
        """Make later work on this stream wait for the event."""
        self._call("hipStreamWaitEvent", self._handle, event.handle, 0)


class Event(_Held):
    """A point in a stream. Errors of its calls: RunError, UsageError before it was recorded."""

    _destroy = "hipEventDestroy"

    def __init__(self, device: Device) -> None:
        super().__init__(device, "hipEventCreate")
        self._is_recorded = False

    @property
    def handle(self) -> ctypes.c_void_p:
        """The hipEvent_t."""
        if not self._is_recorded:
            raise UsageError("the event was not recorded")
        return self._handle

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind all that was asked of a stream; None is the device's default stream."""
        self._call("hipEventRecord", self._handle, None if stream is None else stream._handle)
        self._is_recorded = True

    def synchronize(self) -> None:
        """Wait until the stream has come to it."""
        self._call("hipEventSynchronize", self.handle)

    def elapsed_ms(self, earlier: Event) -> float:
        """Return the milliseconds since an earlier event; both must have been reached."""
        found = ctypes.c_float()
        self._call("hipEventElapsedTime", ctypes.byref(found), earlier.handle, self.handle)
        return found.value

"""Streams and events of a GPU, for callers without HIP or CUDA bindings."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable

from mgx_mlir.core import forks
from mgx_mlir.core.errors import UsageError
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.gpu_calls import call, current

# hipStreamNonBlocking, CU_STREAM_NON_BLOCKING: does not wait for the device's default stream
_NON_BLOCKING = 1


def priorities(device: Device) -> tuple[int, int]:
    """Return a device's least and greatest priority of streams; the greatest is the lower
    number.
    """
    least, greatest = ctypes.c_int(), ctypes.c_int()
    call(device, "stream_priorities", ctypes.byref(least), ctypes.byref(greatest))
    return least.value, greatest.value


_making = forks.lock()


def own_stream(device: Device) -> Stream:
    """Return our stream of a device, on which we wait for other libraries' work."""
    with _making:  # two first callers would make two, and one of them is destroyed while in use
        return _own_stream(device)


@functools.lru_cache(maxsize=64)
def _own_stream(device: Device) -> Stream:
    return Stream(device)


# streams of other libraries that may still read our results; they live as long as the process
_readers: dict[Device, set[int]] = {}


def note_reader(device: Device, stream: int) -> None:
    """Record that a caller's stream reads results of a device's programs.

    A dropped result's memory is reused by the next call, although the stream may still read it.
    stream: one that is never destroyed.
    """
    _readers.setdefault(device, set()).add(stream)


def wait_for_readers(device: Device) -> None:
    """Wait for the streams that may read what later calls write. Errors: RunError."""
    for stream in tuple(_readers.get(device, ())):
        call(device, "stream_synchronize", ctypes.c_void_p(stream))


class Copies:
    """Copies to, from and within a device's memory, on a stream of ours. Errors: RunError."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._asked: list[tuple[str, int, int, int]] = []

    def __bool__(self) -> bool:
        return bool(self._asked)

    def to_device(self, to: int, source: int, nbytes: int) -> None:
        """Ask for a copy of host memory, which the caller keeps until it is done."""
        if nbytes:
            self._asked.append(("copy_to_device_async", to, source, nbytes))

    def to_host(self, to: int, source: int, nbytes: int) -> None:
        """Ask for a copy to host memory."""
        if nbytes:
            self._asked.append(("copy_to_host_async", to, source, nbytes))

    def within(self, to: int, source: int, nbytes: int) -> None:
        """Ask for a copy between two places of the device."""
        if nbytes:
            self._asked.append(("copy_within_async", to, source, nbytes))

    def drop(self) -> None:
        """Discard the requested copies."""
        self._asked = []

    def finish(self) -> None:
        """Make the requested copies; they are complete on return."""
        asked, self._asked = self._asked, []
        if not asked:
            return
        device = self._device
        stream = ctypes.c_void_p(own_stream(device).address)
        with current(device) as library:
            for name, to, source, nbytes in asked:
                places = ctypes.c_void_p(to), ctypes.c_void_p(source)
                device.api.call(library, name, *places, ctypes.c_size_t(nbytes), stream)
            device.api.call(library, "stream_synchronize", stream)


def copy_in(device: Device, to: int, source: int, nbytes: int) -> None:
    """Copy bytes of host memory to a device's memory; it is done on return. Errors: RunError."""
    copies = Copies(device)
    copies.to_device(to, source, nbytes)
    copies.finish()


class _Held:
    """An object of the driver library, destroyed with its last reference."""

    _destroy = ""

    def __init__(self, device: Device, create: str, *arguments: object) -> None:
        self.device = device
        self._handle = ctypes.c_void_p()
        self._call(create, ctypes.byref(self._handle), *arguments)

    def _call(self, name: str, *arguments: object) -> None:
        call(self.device, name, *arguments)

    def __del__(self, _ending: Callable[[], bool] = sys.is_finalizing) -> None:
        handle = getattr(self, "_handle", None)
        if handle and not _ending():
            # an error cannot be raised here, and the library may be unloaded at exit
            with contextlib.suppress(Exception), current(self.device) as library:
                self.device.api.function(library, self._destroy)(handle)


class Stream(_Held):
    """A stream of a device. `address` is what run_async takes. Errors of its calls: RunError.

    `priority`: within `priorities`, a lower number comes first; None: the driver's own.
    Errors: UsageError for another one.
    """

    _destroy = "stream_destroy"

    def __init__(self, device: Device, priority: int | None = None) -> None:
        if priority is None:
            super().__init__(device, "stream_create", _NON_BLOCKING)
            return
        least, greatest = priorities(device)
        if not greatest <= priority <= least:
            raise UsageError(
                f"expected a priority from {greatest}, the first, to {least}, got {priority}"
            )
        super().__init__(device, "stream_create_at", _NON_BLOCKING, priority)

    @property
    def priority(self) -> int:
        """The priority that the driver gave it."""
        found = ctypes.c_int()
        self._call("stream_priority", self._handle, ctypes.byref(found))
        return found.value

    @property
    def address(self) -> int:
        """The ihipStream_t or CUstream_st."""
        return self._handle.value or 0

    def synchronize(self) -> None:
        """Wait until all work launched on it is done."""
        self._call("stream_synchronize", self._handle)

    def wait(self, event: Event) -> None:
        """Make later work on this stream wait for the event."""
        self._call("stream_wait_event", self._handle, event.handle)


class Event(_Held):
    """A point in a stream. Errors of its calls: RunError, UsageError before it was recorded."""

    _destroy = "event_destroy"

    def __init__(self, device: Device) -> None:
        super().__init__(device, "event_create")
        self._is_recorded = False

    @property
    def handle(self) -> ctypes.c_void_p:
        """The hipEvent_t or CUevent."""
        if not self._is_recorded:
            raise UsageError("the event was not recorded")
        return self._handle

    def record(self, stream: Stream | None = None) -> None:
        """Order it after all work launched on a stream; None is the device's default stream."""
        self._call("event_record", self._handle, None if stream is None else stream._handle)
        self._is_recorded = True

    def synchronize(self) -> None:
        """Wait until the stream has come to it."""
        self._call("event_synchronize", self.handle)

    def elapsed_ms(self, earlier: Event) -> float:
        """Return the milliseconds since an earlier event; both must have been reached."""
        found = ctypes.c_float()
        self._call("event_elapsed", ctypes.byref(found), earlier.handle, self.handle)
        return found.value

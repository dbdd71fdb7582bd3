"""Calls of HIP and CUDA that IREE's runtime does not expose, in the library that it loads."""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import TargetError
from mgx_mlir.runtime import hip_library
from mgx_mlir.runtime.device import Device, open_device
from mgx_mlir.runtime.gpu_api import CUDA, HIP, Api, loaded

# hipDeviceProp_t of either layout, searched for the architecture's name
_PROPERTIES = ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties")
_PROPERTIES_SIZE = 1 << 14  # bytes; more than either layout has
_GFX = re.compile(rb"gfx[0-9a-f]{3,5}")
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


def device_synchronize(device: Device) -> None:
    """Wait for all work launched on a GPU. Errors: RunError, TargetError."""
    call(device, "synchronize")


def stream_synchronize(device: Device, stream: int) -> None:
    """Wait for all work launched on a stream of a device. Errors: RunError, TargetError."""
    call(device, "stream_synchronize", ctypes.c_void_p(stream))


def allocation_bytes_from(device: Device, address: int) -> int:
    """Return the bytes from an address to the end of its allocation; 0 if the device has none
    there.
    """
    base, size = ctypes.c_void_p(), ctypes.c_size_t()
    with current(device) as library:
        known = device.api.function(library, "address_range")
        if known is None:  # a library without the function
            return 0
        status = known(ctypes.byref(base), ctypes.byref(size), ctypes.c_void_p(address))
        if status:
            clear = device.api.function(library, "clear_error")
            if clear is not None:
                clear()  # otherwise the next call would return the error
            return 0
    return max((base.value or 0) + size.value - address, 0)


def copy(device: Device, to: int, source: int, nbytes: int) -> None:
    """Copy bytes within a device's memory; it may go on after the call. Errors: RunError."""
    places = ctypes.c_void_p(to), ctypes.c_void_p(source)
    call(device, "copy_within", *places, ctypes.c_size_t(nbytes))


def call(device: Device, name: str, *args: Any) -> None:
    """Call a function of gpu_api's table on a device. Errors: RunError, TargetError."""
    with current(device) as library:
        device.api.call(library, name, *args)


@lru_cache(maxsize=64)
def device_arch(device: Device) -> str:
    """Return the architecture of a GPU (gfx942, sm_90); "" where the library does not say."""
    return _arch(device.api, loaded(device.api, device.library), device.index)


def _arch(api: Api, library: ctypes.CDLL, index: int) -> str:
    if api is CUDA:
        handle, found = ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
        status = library.cuDeviceGet(ctypes.byref(handle), index)
        for value, which in zip(found, (_MAJOR, _MINOR), strict=True):
            status = status or library.cuDeviceGetAttribute(ctypes.byref(value), which, handle)
        return "" if status else f"sm_{found[0].value}{found[1].value}"
    for name in _PROPERTIES:
        ask = getattr(library, name, None)
        properties = ctypes.create_string_buffer(_PROPERTIES_SIZE)
        if ask is not None and ask(properties, index) == 0:
            match = _GFX.search(properties.raw)
            if match:
                return match[0].decode()
    return ""


def library_file(device: Device) -> Path:
    """Return the file of a device's library. Errors: TargetError."""
    library = loaded(device.api, device.library)
    found = hip_library.file_of(library.hipInit if device.api is HIP else library.cuInit)
    if found is None:
        raise TargetError(f"cannot find the path of the loaded {device.api.name} library")
    return found


def print_devices(kind: str) -> None:
    """Print the name and architecture of each GPU of a driver, as JSON; `targets.devices` runs it.

    Errors: TargetError.
    """
    import iree.runtime as rt  # the runtime takes long to load, and only calls need it

    device = open_device(kind)
    library = loaded(device.api, device.library)
    rows = rt.get_driver(kind).query_available_devices()
    names = [str(row.get("name", "")) for row in rows]
    print(json.dumps([[name, _arch(device.api, library, i)] for i, name in enumerate(names)]))


class _Entered:
    """A device whose context is this thread's current one within a `with`.

    IREE's cuda driver allocates in the thread's context, and fails in a thread that has none. The
    thread keeps the context, for memory that it frees later.
    """

    __slots__ = ("_context", "_library", "_pushed")

    def __init__(self, device: Device) -> None:
        self._library, self._context = loaded(device.api, device.library), context_of(device)
        self._pushed = False

    def __enter__(self) -> None:
        found = ctypes.c_void_p()
        self._library.cuCtxGetCurrent(ctypes.byref(found))
        if found.value is None:
            self._library.cuCtxSetCurrent(self._context)
        elif found.value != self._context.value:
            self._pushed = self._library.cuCtxPushCurrent_v2(self._context) == 0

    def __exit__(self, *_: object) -> None:
        if self._pushed:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


_NOTHING = contextlib.nullcontext()


def entered(device: Device) -> contextlib.AbstractContextManager[None]:
    """Return a context manager in which IREE can use a device on this thread."""
    return _Entered(device) if device.kind == CUDA.kind else _NOTHING


@contextmanager
def current(device: Device) -> Iterator[Any]:
    """Make the device this thread's current one; yield its library."""
    api, library = device.api, loaded(device.api, device.library)
    if api is CUDA:
        with entered(device):
            yield library
        return
    before = ctypes.c_int(0)
    api.check(library, "hipGetDevice", library.hipGetDevice(ctypes.byref(before)))
    api.check(library, "hipSetDevice", library.hipSetDevice(device.index))
    try:
        yield library
    finally:
        library.hipSetDevice(before.value)


@lru_cache(maxsize=64)
def context_of(device: Device) -> ctypes.c_void_p:
    """Return the context that all libraries of a process share on a CUDA device; kept for ever."""
    library = loaded(device.api, device.library)
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    check = device.api.check
    check(library, "cuInit", library.cuInit(0))
    check(library, "cuDeviceGet", library.cuDeviceGet(ctypes.byref(handle), device.index))
    status = library.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
    check(library, "cuDevicePrimaryCtxRetain", status)
    return context

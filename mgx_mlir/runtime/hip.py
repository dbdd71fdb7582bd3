"""The few calls of HIP that IREE's runtime has no name for, from the library it loads."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import RunError, TargetError
from mgx_mlir.runtime import hip_library
from mgx_mlir.runtime.device import Device, open_device

# hipDeviceProp_t of either layout; the name of the architecture stands in it as text
_PROPERTIES = ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties")
_WITHIN = 3  # hipMemcpyDeviceToDevice
_PROPERTIES_SIZE = 1 << 14  # more than either has
_GFX = re.compile(rb"gfx[0-9a-f]{3,5}")


def device_synchronize(device: Device) -> None:
    """Wait for all that was asked of a hip device. Errors: RunError, TargetError."""
    with current(device) as library:
        check(library, "hipDeviceSynchronize", library.hipDeviceSynchronize())


def stream_synchronize(device: Device, stream: int) -> None:
    """Wait for all that was asked of a stream of a device. Errors: RunError, TargetError."""
    with current(device) as library:
        check(
            library, "hipStreamSynchronize", library.hipStreamSynchronize(ctypes.c_void_p(stream))
        )


def room_at(device: Device, address: int) -> int:
    """Return the bytes of the device's allocation from an address on; 0 where it knows none."""
    base, size = ctypes.c_void_p(), ctypes.c_size_t()
    with current(device) as library:
        known = getattr(library, "hipMemGetAddressRange", None)
        if known is None:  # a library that cannot say
            return 0
        status = known(ctypes.byref(base), ctypes.byref(size), ctypes.c_void_p(address))
        if status:
            library.hipGetLastError()  # else the next call is blamed for it
            return 0
    return max((base.value or 0) + size.value - address, 0)


def copy(device: Device, to: int, source: int, nbytes: int) -> None:
    """Copy bytes within a device's memory; it may go on after the call. Errors: RunError."""
    with current(device) as library:
        status = library.hipMemcpy(
            ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(nbytes), _WITHIN
        )
        check(library, "hipMemcpy", status)


@lru_cache(maxsize=64)
def device_arch(device: Device) -> str:
    """Return the gfx name of a hip device's architecture; "" where HIP does not say."""
    return _arch(hip_library.loaded(device.library), device.index)


def _arch(library: ctypes.CDLL, index: int) -> str:
    for name in _PROPERTIES:
        call = getattr(library, name, None)
        found = ctypes.create_string_buffer(_PROPERTIES_SIZE)
        if call is not None and call(found, index) == 0:
            match = _GFX.search(found.raw)
            if match:
                return match[0].decode()
    return ""


class _Found(ctypes.Structure):
    """Dl_info (dlfcn.h)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def library_file(device: Device) -> Path:
    """Return the file of a device's HIP library. Errors: TargetError."""
    known = ctypes.cast(hip_library.loaded(device.library).hipInit, ctypes.c_void_p)
    found = _Found()
    if not ctypes.CDLL(None).dladdr(known, ctypes.byref(found)) or not found.file:
        raise TargetError("the file of the HIP library is not known")
    return Path(found.file.decode()).resolve()


def print_devices() -> None:
    """Print the name and architecture of each HIP device, as JSON; what `hip_devices` runs."""
    import iree.runtime as rt  # the runtime takes long to load, and only calls need it

    device = open_device("hip")
    library = hip_library.loaded(device.library)
    rows = rt.get_driver("hip").query_available_devices()
    names = [str(row.get("name", "")) for row in rows]
    print(json.dumps([[name, _arch(library, i)] for i, name in enumerate(names)]))


@contextmanager
def current(device: Device) -> Iterator[Any]:
    """Make the device this thread's current one; yield its library."""
    library, before = hip_library.loaded(device.library), ctypes.c_int(0)
    check(library, "hipGetDevice", library.hipGetDevice(ctypes.byref(before)))
    check(library, "hipSetDevice", library.hipSetDevice(device.index))
    try:
        yield library
    finally:
        library.hipSetDevice(before.value)


def check(library: ctypes.CDLL, name: str, status: int) -> None:
    """Raise RunError where a call of HIP failed, with HIP's own text."""
    if status:
        library.hipGetErrorString.restype = ctypes.c_char_p
        said = library.hipGetErrorString(status) or b""
        raise RunError(f"{name} failed with status {status}: {said.decode(errors='replace')}")

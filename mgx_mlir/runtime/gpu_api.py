"""The driver libraries of GPUs: one table of functions for HIP and CUDA, their files, their
versions.

IREE's runtime loads the same library by itself, for its driver of the same kind.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import RunError, TargetError
from mgx_mlir.runtime import hip_library

LEAST_HIP = 6  # whose layouts of device properties and graph parameters are used
_CUDA_NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")

Row = tuple[Any, ...]  # a function of the library, and integers that follow its arguments

# Neutral name: function of HIP, of CUDA. Both take the same arguments in the same order.
_FUNCTIONS: dict[str, tuple[Row | None, Row | None]] = {
    "synchronize": (("hipDeviceSynchronize",), ("cuCtxSynchronize",)),
    "address_range": (("hipMemGetAddressRange",), ("cuMemGetAddressRange_v2",)),
    "copy_within": (("hipMemcpyDtoD",), ("cuMemcpyDtoD_v2",)),
    "copy_within_async": (("hipMemcpyDtoDAsync",), ("cuMemcpyDtoDAsync_v2",)),
    "copy_to_device_async": (("hipMemcpyHtoDAsync",), ("cuMemcpyHtoDAsync_v2",)),
    "copy_to_host_async": (("hipMemcpyDtoHAsync",), ("cuMemcpyDtoHAsync_v2",)),
    "fill": (("hipMemset",), ("cuMemsetD8_v2",)),
    "memory_info": (("hipMemGetInfo",), ("cuMemGetInfo_v2",)),
    "stream_create": (("hipStreamCreateWithFlags",), ("cuStreamCreate",)),
    "stream_create_at": (("hipStreamCreateWithPriority",), ("cuStreamCreateWithPriority",)),
    "stream_destroy": (("hipStreamDestroy",), ("cuStreamDestroy_v2",)),
    "stream_priority": (("hipStreamGetPriority",), ("cuStreamGetPriority",)),
    "stream_priorities": (("hipDeviceGetStreamPriorityRange",), ("cuCtxGetStreamPriorityRange",)),
    "stream_synchronize": (("hipStreamSynchronize",), ("cuStreamSynchronize",)),
    "stream_wait_event": (("hipStreamWaitEvent", 0), ("cuStreamWaitEvent", 0)),
    "event_create": (("hipEventCreateWithFlags", 0), ("cuEventCreate", 0)),
    "event_destroy": (("hipEventDestroy",), ("cuEventDestroy_v2",)),
    "event_record": (("hipEventRecord",), ("cuEventRecord",)),
    "event_synchronize": (("hipEventSynchronize",), ("cuEventSynchronize",)),
    "event_elapsed": (("hipEventElapsedTime",), ("cuEventElapsedTime",)),
    "graph_create": (("hipGraphCreate",), ("cuGraphCreate",)),
    "graph_instantiate": (("hipGraphInstantiate",), ("cuGraphInstantiateWithFlags",)),
    "graph_launch": (("hipGraphLaunch",), ("cuGraphLaunch",)),
    "driver_version": (("hipDriverGetVersion",), ("cuDriverGetVersion",)),
    # only HIP: a failed call's error is returned again by a later call
    "clear_error": (("hipGetLastError",), None),
}


@dataclass(frozen=True)
class Api:
    """A vendor's driver library. `kind`: the name of IREE's driver over it."""

    kind: str
    name: str
    vendor: str
    names: tuple[str, ...]  # file names of the library
    dlpack: int  # DLPack's number of its devices
    stream_type: str  # C type of a stream
    functions: Mapping[str, Row] = field(repr=False, hash=False, compare=False)

    def function(self, library: Any, name: str) -> Any:
        """Return the library's function of a neutral name, None where it has none."""
        row = self.functions.get(name)
        found = None if row is None else getattr(library, row[0], None)
        if found is None or row is None or len(row) == 1:
            return found
        return lambda *args: found(*args, *row[1:])

    def call(self, library: Any, name: str, *args: Any) -> None:
        """Call a function. Errors: RunError with the library's own text."""
        function = self.function(library, name)
        if function is None:
            raise RunError(f"this {self.name} has no {self.functions.get(name, (name,))[0]}")
        self.check(library, name, function(*args))

    def check(self, library: Any, name: str, status: int) -> None:
        """Raise RunError where a call failed. name: neutral, or one of the library's."""
        if status:
            shown = self.functions.get(name, (name,))[0]
            said = self.error_text(library, status)
            raise RunError(f"{shown} failed with status {status}: {said}")

    def error_text(self, library: Any, status: int) -> str:
        """Return the library's text for a status."""
        if self.kind == "hip":
            library.hipGetErrorString.restype = ctypes.c_char_p
            return (library.hipGetErrorString(status) or b"").decode(errors="replace")
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        return (text.value or b"").decode(errors="replace")


def _column(at: int) -> dict[str, Row]:
    rows = {name: pair[at] for name, pair in _FUNCTIONS.items()}
    return {name: row for name, row in rows.items() if row is not None}


HIP = Api("hip", "HIP", "AMD", hip_library.NAMES, 10, "ihipStream_t", _column(0))
CUDA = Api("cuda", "CUDA", "NVIDIA", _CUDA_NAMES, 2, "CUstream_st", _column(1))
APIS = {api.kind: api for api in (HIP, CUDA)}
KINDS = tuple(APIS)  # IREE's drivers of GPUs


def version(
    api: Api, library: Any, which: str = "hipRuntimeGetVersion"
) -> tuple[int, int, int] | None:
    """Return the library's version, None where it is unknown. which: the name of HIP's function."""
    number = ctypes.c_int(0)
    name = which if api is HIP else "cuDriverGetVersion"
    known = getattr(library, name, None)
    if known is None or known(ctypes.byref(number)):
        return None
    if api is CUDA:  # major * 1000 + minor * 10
        return number.value // 1000, number.value % 1000 // 10, 0
    # major * 10,000,000 + minor * 100,000 + patch
    return number.value // 10_000_000, number.value // 100_000 % 100, number.value % 100_000


def check_version(api: Api, place: str) -> None:
    """Raise TargetError for a HIP that the runtime is not made for, or that cannot be loaded."""
    library = loaded(api, place)
    if api is not HIP:
        return
    found = version(api, library)
    if found is not None and found[0] < LEAST_HIP:
        raise TargetError(
            f"HIP {'.'.join(map(str, found))} is too old: HIP {LEAST_HIP} or newer is needed",
            notes=[f"of {place}" if place else "of the system's libamdhip64", "ROCm 6 has HIP 6"],
        )


@lru_cache(maxsize=8)
def loaded(api: Api, place: str = "") -> ctypes.CDLL:
    """Load the library in a folder, of a file, or the system's (""). Errors: TargetError."""
    names = list(hip_library.candidates() if api is HIP else api.names)
    if place:
        found = Path(place.removeprefix("file:"))
        names = [str(found)] if found.is_file() else [str(found / n) for n in api.names]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise TargetError(
        f"the {api.name} library cannot be loaded", notes=[f"looked for {', '.join(names)}"]
    )

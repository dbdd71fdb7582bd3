"""The path of a HIP library, and the functions that IREE's driver needs.

ROCm's development packages have a link `libamdhip64.so`; its runtime alone, AMD's wheels and some
distributions have `libamdhip64.so.6` or `.7` only. IREE looks for the link only, so we pass it the
file.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "amdhip64.dll")
_WHEEL = "_rocm_sdk_core"  # the package of AMD's wheel rocm-sdk-core; its `lib` holds the library

# Functions without which IREE 3.13's driver does not load a library: the required rows of its
# runtime/src/iree/hal/drivers/hip/dynamic_symbol_tables.h. hipCtx* are deprecated in HIP.
REQUIRED = [
    "hipCtxGetCurrent", "hipCtxPopCurrent", "hipCtxPushCurrent", "hipCtxSetCurrent",
    "hipDeviceCanAccessPeer", "hipDeviceEnablePeerAccess", "hipDeviceGet",
    "hipDeviceGetAttribute", "hipDeviceGetName", "hipDeviceGetUuid",
    "hipDevicePrimaryCtxRelease", "hipDevicePrimaryCtxRetain", "hipEventCreate",
    "hipEventCreateWithFlags", "hipEventDestroy", "hipEventElapsedTime", "hipEventQuery",
    "hipEventRecord", "hipEventSynchronize", "hipFree", "hipFreeAsync", "hipFuncGetAttribute",
    "hipFuncSetAttribute", "hipGetDeviceCount", "hipGetErrorName", "hipGetErrorString",
    "hipGetLastError", "hipGraphAddEmptyNode", "hipGraphAddEventRecordNode",
    "hipGraphAddKernelNode", "hipGraphAddMemsetNode", "hipGraphCreate", "hipGraphDestroy",
    "hipGraphExecDestroy", "hipGraphInstantiate", "hipGraphLaunch", "hipHostFree",
    "hipHostGetDevicePointer", "hipHostMalloc", "hipHostRegister", "hipHostUnregister",
    "hipInit", "hipLaunchHostFunc", "hipLaunchKernel", "hipMalloc", "hipMallocAsync",
    "hipMallocFromPoolAsync", "hipMallocManaged", "hipMemPoolCreate", "hipMemPoolDestroy",
    "hipMemPoolGetAttribute", "hipMemPoolSetAttribute", "hipMemPoolTrimTo",
    "hipMemPrefetchAsync", "hipMemcpy", "hipMemcpyAsync", "hipMemcpyHtoDAsync", "hipMemset",
    "hipMemsetAsync", "hipMemsetD16Async", "hipMemsetD32Async", "hipMemsetD8Async",
    "hipModuleGetFunction", "hipModuleGetGlobal", "hipModuleLaunchKernel", "hipModuleLoadData",
    "hipModuleLoadDataEx", "hipModuleUnload", "hipSetDevice", "hipStreamCreateWithFlags",
    "hipStreamDestroy", "hipStreamSynchronize", "hipStreamWaitEvent",
]  # fmt: skip


def candidates() -> Iterator[str]:
    """Return names and files of the system's HIP library, in the order in which they are tried."""
    yield from NAMES
    folders = [Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "lib"]
    found = importlib.util.find_spec(_WHEEL)
    folders += [Path(p) / "lib" for p in (found.submodule_search_locations or ())] if found else []
    for folder in folders:
        yield from (str(folder / name) for name in NAMES)


class _Found(ctypes.Structure):
    """Dl_info (dlfcn.h)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def file_of(function: Any) -> Path | None:
    """Return the file that holds a function of a loaded library, None where that is not known."""
    found = _Found()
    at = ctypes.cast(function, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(at, ctypes.byref(found)) or not found.file:
        return None
    return Path(found.file.decode()).resolve()


def missing(library: ctypes.CDLL) -> list[str]:
    """Return the functions that IREE's driver needs and a HIP library lacks."""
    return [name for name in REQUIRED if not hasattr(library, name)]


__all__ = ["NAMES", "REQUIRED", "candidates", "file_of", "missing"]

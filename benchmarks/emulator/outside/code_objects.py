"""Code objects of others on the emulator: one round machine code, and HIP by ctypes.

`wrap` makes an ELF code object of one kernel; `Hip` loads it, allocates, copies and launches.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.targets import emulator

# EF_AMDGPU_MACH of LLVM's AMDGPU page
MACHINES = {
    "gfx90a": 0x3F,
    "gfx942": 0x4C,
    "gfx950": 0x4F,
    "gfx1100": 0x41,
    "gfx1200": 0x48,
    "gfx1201": 0x4E,
}
_SUCCESS = 0


class HipError(Exception):
    """A HIP call failed; the text is the emulator's."""


def library() -> Path:
    """The emulator's library. Error: it is not built."""
    found = emulator.find_library()
    if found is None:
        raise HipError("the emulator is not built: see docs/emulator.md")
    return found if found.is_file() else found / "libamdhip64.so"


def descriptor(entry: int, **sizes: int) -> bytes:
    """A kernel descriptor of 64 bytes; `entry` is relative to it."""
    return struct.pack(
        "<IIIIq20xIIIHHI",
        sizes.get("lds", 0),
        sizes.get("scratch", 0),
        sizes.get("kernarg", 8),
        0,
        entry,
        0,
        sizes.get("rsrc1", 0),
        sizes.get("rsrc2", 0),
        sizes.get("properties", 8),
        0,
        0,
    )


def wrap(code: bytes, arch: str, name: str = "test", **sizes: int) -> bytes:
    """An ELF code object whose one kernel is `code`; sizes are those of `descriptor`."""
    header, kernel = 0x1000, 0x2000
    strings = b"\0" + name.encode() + b"\0" + name.encode() + b".kd\0"
    of_kernel, of_descriptor = 1, 2 + len(name)
    symbols = bytes(24)
    symbols += struct.pack("<IBBHQQ", of_kernel, 0x12, 0, 1, kernel, len(code))
    symbols += struct.pack("<IBBHQQ", of_descriptor, 0x11, 0, 1, header, 64)
    body = descriptor(kernel - header, **sizes).ljust(kernel - header, b"\0") + code
    at_symbols = header + len(body)
    at_strings = at_symbols + len(symbols)
    at_sections = (at_strings + len(strings) + 7) // 8 * 8
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at_symbols, len(symbols), 2, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at_strings, len(strings), 0, 0, 1, 0)
    program = struct.pack("<IIQQQQQQ", 1, 5, header, header, header, len(body), len(body), 4096)
    elf = b"\x7fELF\x02\x01\x01\x40" + bytes(8)
    elf += struct.pack("<HHIQQQI", 3, 224, 1, 0, 64, at_sections, MACHINES[arch])
    elf += struct.pack("<HHHHHH", 64, 56, 1, 64, 3, 0)
    elf = (elf + program).ljust(header, b"\0") + body + symbols + strings
    return elf.ljust(at_sections, b"\0") + sections


class Hip:
    """The emulator's HIP functions, as Python calls. Errors: HipError."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL(str(library()))
        self._lib.hipGetErrorString.restype = ctypes.c_char_p
        self._call("hipInit", 0)

    def _call(self, name: str, *args: Any) -> None:
        if getattr(self._lib, name)(*args) != _SUCCESS:
            raise HipError(self._lib.hipGetErrorString(1).decode())

    def put(self, array: np.ndarray) -> int:
        """Copy an array to new memory of the device."""
        data = np.ascontiguousarray(array)
        p = ctypes.c_void_p()
        self._call("hipMalloc", ctypes.byref(p), ctypes.c_size_t(max(data.nbytes, 1)))
        where = ctypes.c_void_p(data.ctypes.data)
        self._call("hipMemcpy", p, where, ctypes.c_size_t(data.nbytes), 1)
        assert p.value is not None
        return p.value

    def get(self, p: int, like: np.ndarray) -> np.ndarray:
        """Copy from the device what has the shape and type of an array."""
        found = np.empty_like(like)
        where = ctypes.c_void_p(found.ctypes.data)
        self._call("hipMemcpy", where, ctypes.c_void_p(p), ctypes.c_size_t(found.nbytes), 2)
        return found

    def free(self, *pointers: int) -> None:
        for p in pointers:
            self._call("hipFree", ctypes.c_void_p(p))

    def share(self, p: int, size: int) -> None:
        """Let kernels touch memory of the host."""
        self._call("hipHostRegister", ctypes.c_void_p(p), ctypes.c_size_t(size), 0)

    def unshare(self, p: int) -> None:
        self._call("hipHostUnregister", ctypes.c_void_p(p))

    def load(self, image: bytes) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self._call("hipModuleLoadData", ctypes.byref(module), image)
        return module

    def unload(self, module: ctypes.c_void_p) -> None:
        self._call("hipModuleUnload", module)

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self._call("hipModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found

    def launch(
        self,
        function: ctypes.c_void_p,
        groups: Sequence[int],
        threads: Sequence[int],
        segment: bytes,
        lds: int = 0,
    ) -> None:
        """Launch with a whole segment of arguments; the call returns when the kernel has ended."""
        size = ctypes.c_size_t(len(segment))
        buffer = ctypes.create_string_buffer(segment, len(segment))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        grid = [ctypes.c_uint32(n) for n in (*groups, *threads)]
        self._call(
            "hipModuleLaunchKernel", function, *grid, ctypes.c_uint32(lds), None, None, extra
        )

"""Kernels of a CUDA executable inside a compiled module: PTX and launch parameters.

The executable is a flatbuffer of IREE 3.13, `CDA1`, which lies uncompressed in the .vmfb.
Registers are virtual in PTX: the driver assigns those of the device.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.errors import FileError

_MAGIC = b"CDA1"
_HEADER = struct.Struct("<4sIQ48x")  # magic, version, size of the content, reserved
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_TARGET = re.compile(r"^\.target\s+(sm_\d+)", re.MULTILINE)
_LOCAL = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+[\w$]+\[(\d+)\]")
# fields by their number in IREE's schema of the executable
_EXPORTS, _MODULES = 0, 1
_KERNEL_NAME, _BLOCK, _SHARED = 1, 2, 3
_IMAGE = 0


@dataclass(frozen=True)
class PtxKernel:
    """A kernel; sizes in bytes."""

    name: str
    arch: str  # PTX target, such as sm_89
    workgroup: tuple[int, int, int]
    shared: int  # shared memory of a workgroup
    local: int  # local memory of a thread, in device memory
    text: str  # PTX of the kernel, from its entry on


class _Table:
    """A table of a flatbuffer."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - self._number(at, "<i")

    def _number(self, at: int, form: str = "<I") -> int:
        try:
            if at < 0:
                raise FileError("a CUDA executable is cut short")
            return struct.unpack_from(form, self.data, at)[0]
        except struct.error as e:
            raise FileError("a CUDA executable is cut short") from e

    def field(self, number: int) -> int | None:
        """Return the offset of a field, None where it has its default."""
        row = 4 + 2 * number
        if row >= self._number(self.fields, "<H"):
            return None
        offset = self._number(self.fields + row, "<H")
        return self.at + offset if offset else None

    def number(self, number: int, index: int = 0) -> int:
        """Return a number of 32 bits, or one of a struct of such."""
        at = self.field(number)
        return 0 if at is None else self._number(at + 4 * index)

    def text(self, number: int) -> str:
        """Return a string."""
        at = self.field(number)
        if at is None:
            return ""
        at += self._number(at)
        size = self._number(at)
        return self.data[at + 4 : at + 4 + size].decode(errors="replace")

    def tables(self, number: int) -> Iterator[_Table]:
        """Yield the tables of a vector."""
        at = self.field(number)
        if at is None:
            return
        at += self._number(at)
        for i in range(min(self._number(at), len(self.data) // 4)):
            place = at + 4 + 4 * i
            yield _Table(self.data, place + self._number(place))


def ptx_executables(vmfb: bytes | np.ndarray) -> Iterator[list[PtxKernel]]:
    """Yield the kernels of each CUDA executable of a module, in file order. Errors: FileError."""
    vmfb = bytes(vmfb)
    at = vmfb.find(_MAGIC)
    while at >= 0:
        start = at + _HEADER.size
        # the header's magic is that of the flatbuffer behind it
        if vmfb[start + 4 : start + 8] == _MAGIC:
            _, _, size = _HEADER.unpack_from(vmfb, at)
            content = vmfb[start : start + size]
            if len(content) < size or size < 8:
                raise FileError("a CUDA executable is cut short")
            yield list(_kernels(content))
            at = start + size
        at = vmfb.find(_MAGIC, at + len(_MAGIC))


def _kernels(content: bytes) -> Iterator[PtxKernel]:
    root = _Table(content, struct.unpack_from("<I", content)[0])
    bodies = {}
    for module in root.tables(_MODULES):
        image = module.text(_IMAGE)
        target = _TARGET.search(image)
        starts = [(m[1], m.start()) for m in _ENTRY.finditer(image)]
        ends = [at for _, at in starts[1:]] + [len(image)]
        for (name, at), end in zip(starts, ends, strict=True):
            bodies[name] = (target[1] if target else "", image[at:end])
    for export in root.tables(_EXPORTS):
        name = export.text(_KERNEL_NAME)
        arch, text = bodies.get(name, ("", ""))
        x, y, z = (export.number(_BLOCK, i) for i in range(3))
        local = sum(int(n) for n in _LOCAL.findall(text))
        yield PtxKernel(name, arch, (x, y, z), export.number(_SHARED), local, text)


__all__ = ["PtxKernel", "ptx_executables"]

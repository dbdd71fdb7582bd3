"""Contents of a compiled gpu module: its code objects, kernels, registers, spills, launches.

Everything is read from the module itself. AMD's code objects are ELF files inside the .vmfb, and
each carries IREE's own note (msgpack) on every kernel. NVIDIA's are PTX (ptx.py), whose registers
and spills the driver decides: they are 0 here. No number here is an estimate.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.targets.ptx import PtxKernel, ptx_executables

_EM_AMDGPU = 224
_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv", 40: "arm", 3: "i386"}
_SHT_NOTE = 7
_NT_AMDGPU_METADATA = 32
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_DYNSYM = 11
# offset in a kernel descriptor; its lowest 6 bits are vector registers in granules, minus 1
_RSRC1 = 48
_GRANULE = 8
_DIGEST = re.compile(r"^(k[0-9a-f]{7})[0-9a-f]{33}_")  # name of a kernel that was compiled apart
_PTX_LANES = 32  # lanes of a warp


@dataclass(frozen=True)
class KernelReport:
    """A kernel of a code object; registers are per lane, `lds` and `scratch` in bytes.

    `given`: vector registers allocated to a wave, by its descriptor.
    """

    name: str
    arch: str
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds: int
    scratch: int
    workgroup: tuple[int, ...]
    wavefront: int
    given: int

    @property
    def is_ptx(self) -> bool:
        """Return whether the driver assigns its registers, when it is loaded."""
        return self.arch.startswith("sm_")

    @property
    def spilled(self) -> int:
        """Number of registers that it keeps in memory."""
        return self.vgpr_spills + self.sgpr_spills

    @property
    def spills(self) -> bool:
        """Return whether it keeps registers in memory."""
        return self.spilled > 0


@dataclass(frozen=True)
class Report:
    """A module's code objects and launches."""

    kernels: tuple[KernelReport, ...]  # kernels of every GPU code object, in file order
    objects: int  # number of GPU code objects
    foreign: tuple[str, ...]  # machine of every other code object, such as "x86_64"
    # kernels that each exported function launches, in order; "initializer" runs once at load
    launches: Mapping[str, tuple[str, ...]]

    @property
    def called(self) -> tuple[str, ...]:
        """Return the launches of one call: those of "main", which may have variants, else of all
        but the initializer.


        """
        if "main" in self.launches:
            return tuple(self.launches["main"])
        return tuple(n for k, v in self.launches.items() if k != "initializer" for n in v)

    @property
    def dispatches(self) -> int:
        """The number of launches of one call."""
        return len(self.called)

    @property
    def missing(self) -> tuple[str, ...]:
        """Launched kernels that no GPU code object holds: they would run elsewhere."""
        have = {k.name for k in self.kernels}
        names = dict.fromkeys(n for v in self.launches.values() for n in v)
        return tuple(n for n in names if n not in have)

    @property
    def on_host(self) -> int:
        """The number of launches and code objects that are not for the GPU."""
        return len(self.missing) + len(self.foreign)

    def text(self) -> str:
        """Return the report as printed: a line per kernel, then the sums."""
        head = ("vgprs", "agprs", "sgprs", "spills", "lds", "scratch", "workgroup", "kernel")
        rows = [
            (*(("-",) * 4 if k.is_ptx else (k.vgprs, k.agprs, k.sgprs, k.spilled)), k.lds,
             k.scratch, "x".join(map(str, k.workgroup)), short_name(k.name))
            for k in self.kernels
        ]  # fmt: skip
        table = [tuple(map(str, r)) for r in (head, *rows)]
        widths = [max(len(r[i]) for r in table) for i in range(len(head) - 1)]
        lines = [
            "  ".join([*(c.rjust(w) for c, w in zip(r, widths, strict=False)), r[-1]])
            for r in table
        ]
        spilled = [k.name for k in self.kernels if k.spills]
        lines += [
            f"arch: {', '.join(sorted({k.arch for k in self.kernels})) or 'none'}",
            f"dispatches: {self.dispatches}, code objects: {self.objects}, "
            f"kernels: {len(self.kernels)}, not on the GPU: {self.on_host}",
            f"kernels with spills: {len(spilled)}, "
            f"with scratch: {sum(k.scratch > 0 for k in self.kernels)}",
        ]
        return "\n".join(lines)


def code_objects(vmfb: bytes | np.ndarray) -> Iterator[tuple[int, bytes]]:
    """Yield (machine, bytes) of every 64-bit ELF in a .vmfb, where they lie uncompressed.

    Errors: FileError for one that is cut short.
    """
    data = vmfb.tobytes() if isinstance(vmfb, np.ndarray) else bytes(vmfb)
    at = data.find(b"\x7fELF\x02\x01")
    while at >= 0:
        if at + _HEADER.size > len(data):
            raise FileError("a code object is cut short")
        head = _HEADER.unpack_from(data, at)
        machine, sections, entry, count = head[2], head[6], head[11], head[12]
        size = sections + entry * count
        if entry != _SECTION.size or size <= _HEADER.size or at + size > len(data):
            raise FileError("a code object is cut short")
        yield machine, data[at : at + size]
        at = data.find(b"\x7fELF\x02\x01", at + size)


def _sections(elf: bytes) -> list[tuple[int, ...]]:
    """Return the rows of a code object's table of sections, as `_SECTION` has them."""
    head = _HEADER.unpack_from(elf, 0)
    return [_SECTION.unpack_from(elf, head[6] + i * _SECTION.size) for i in range(head[12])]


def _metadata(elf: bytes) -> dict[str, Any]:
    """Return the AMDGPU note of a code object. Errors: FileError."""
    for row in _sections(elf):
        kind, offset, size = row[1], row[4], row[5]
        if kind != _SHT_NOTE:
            continue
        at, end = offset, min(offset + size, len(elf))
        while at + 12 <= end:
            name_size, body_size, note = struct.unpack_from("<III", elf, at)
            name = elf[at + 12 : at + 12 + name_size].rstrip(b"\0")
            body = at + 12 + (name_size + 3 & ~3)
            if name == b"AMDGPU" and note == _NT_AMDGPU_METADATA:
                try:
                    return msgpack.unpackb(elf[body : body + body_size])
                except (ValueError, msgpack.exceptions.UnpackException) as e:
                    raise FileError(
                        f"the AMDGPU metadata note of a code object cannot be read: {e}"
                    ) from e
            at = body + (body_size + 3 & ~3)
    raise FileError("a code object has no AMDGPU note")


def _given_registers(elf: bytes) -> dict[str, int]:
    """Return the vector registers that each kernel's descriptor asks for, by kernel name."""
    rows = _sections(elf)
    found = {}
    for row in rows:
        kind, offset, size, link = row[1], row[4], row[5], row[6]
        if kind != _SHT_DYNSYM or link >= len(rows):
            continue
        names = elf[rows[link][4] : rows[link][4] + rows[link][5]]
        for at in range(offset, min(offset + size, len(elf)) - _SYMBOL.size + 1, _SYMBOL.size):
            name_at, _, _, index, address, _ = _SYMBOL.unpack_from(elf, at)
            name = names[name_at : names.find(b"\0", name_at)].decode(errors="replace")
            if not name.endswith(".kd") or index >= len(rows):
                continue
            place = rows[index][4] + address - rows[index][3] + _RSRC1
            if 0 <= place <= len(elf) - 4:
                (rsrc1,) = struct.unpack_from("<I", elf, place)
                found[name.removesuffix(".kd")] = (rsrc1 % 64 + 1) * _GRANULE
    return found


def _kernels(elf: bytes) -> list[KernelReport]:
    note = _metadata(elf)
    # amdgcn-amd-amdhsa--gfx942:sramecc+ and newer forms of the triple end in the gfx name
    named = re.findall(r"gfx[0-9a-f]+", str(note.get("amdhsa.target", "")))
    arch = named[-1] if named else ""
    found = []
    given = _given_registers(elf)
    for k in note.get("amdhsa.kernels", []):
        size = k.get(".reqd_workgroup_size") or [k.get(".max_flat_workgroup_size", 0), 1, 1]
        found.append(
            KernelReport(
                name=str(k[".name"]),
                arch=arch,
                vgprs=int(k.get(".vgpr_count", 0)),
                agprs=int(k.get(".agpr_count", 0)),
                sgprs=int(k.get(".sgpr_count", 0)),
                vgpr_spills=int(k.get(".vgpr_spill_count", 0)),
                sgpr_spills=int(k.get(".sgpr_spill_count", 0)),
                lds=int(k.get(".group_segment_fixed_size", 0)),
                scratch=int(k.get(".private_segment_fixed_size", 0)),
                workgroup=tuple(int(n) for n in size),
                wavefront=int(k.get(".wavefront_size", 0)),
                given=given.get(str(k[".name"]), int(k.get(".vgpr_count", 0))),
            )
        )
    return found


def _ptx_report(k: PtxKernel) -> KernelReport:
    return KernelReport(
        name=k.name, arch=k.arch, vgprs=0, agprs=0, sgprs=0, vgpr_spills=0, sgpr_spills=0,
        lds=k.shared, scratch=k.local, workgroup=k.workgroup, wavefront=_PTX_LANES, given=0,
    )  # fmt: skip


def short_name(name: str) -> str:
    """Return a kernel's name for a table: seven digits of its digest are enough to find it."""
    return _DIGEST.sub(r"\1_", name)


def gpu_report(
    vmfb: bytes | np.ndarray,
    dispatches: Mapping[str, Iterable[str]] | None = None,
    symbols: Mapping[str, str] | None = None,
) -> Report:
    """Report on the kernels of a gpu module.

    `dispatches`: `Executable.dispatches`, what each function launches. `symbols`:
    `Executable.symbols`, names in the code objects where they differ. Errors: FileError.
    """
    symbols = symbols or {}
    kernels: list[KernelReport] = []
    foreign: list[str] = []
    objects = 0
    for machine, elf in code_objects(vmfb):
        if machine == _EM_AMDGPU:
            objects += 1
            kernels += _kernels(elf)
        else:
            foreign.append(_MACHINES.get(machine, f"machine {machine}"))
    for executable in ptx_executables(vmfb):
        objects += 1
        kernels += map(_ptx_report, executable)
    launches = {
        k: tuple(symbols.get(n, n) for n in names) for k, names in (dispatches or {}).items()
    }
    return Report(tuple(kernels), objects, tuple(foreign), launches)

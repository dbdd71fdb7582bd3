"""A kernel's initial registers, and the mode of its instructions, read from its code object.

A descriptor states the wave's size and the MODE register; instructions that write MODE lie in the
code. Nothing is taken for granted: where a mode cannot be told without running, it is unknown.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.emulator.encodings import Code, length_of
from mgx_mlir.targets import report

MODE = 1  # the register's number for s_setreg and s_getreg
# the first bit in it of what is not flushed: of f32 operands and results, of f16 and f64 the same
DENORMALS = 4
RESULTS = 0b1010
F32 = 0b0011


@dataclass(frozen=True)
class Facts:
    """Facts that hold at every execution of an instruction; None where they are unknown.

    narrow: a wave has 32 lanes. exact: output modifiers are ignored, as results of any type may be
    denormal or the mode is that of IEEE 754. flushes: f32 operands and results are never denormal.
    """

    narrow: bool = False
    exact: bool | None = None
    flushes: bool | None = None


UNKNOWN = Facts()


@dataclass
class Function:
    """A kernel's code, run or not, and what its descriptor says."""

    start: int
    code: list[tuple[int, Code]]
    resources: int  # the first word of program resources
    properties: int
    # lanes of a group along its one axis, 0 where there are more axes or it is not said; places in
    # the arguments where the high half of an address is
    threads: int = 0
    high_halves: frozenset[int] = frozenset()

    @property
    def arguments(self) -> int | None:
        """The scalar register that has the arguments' address at first, and the next."""
        ahead = sum(n for bit, n in enumerate((4, 2, 2)) if self.properties >> bit & 1)
        return ahead if self.properties >> 3 & 1 else None

    @property
    def narrow(self) -> bool:
        return bool(self.properties >> 10 & 1)

    def facts(self) -> dict[int, Facts]:
        """Return the facts of each instruction, by address."""
        ieee = bool(self.resources >> 23 & 1) and not self.code[0][1].arch.startswith("gfx12")
        modes = self._denormals()
        return {
            at: Facts(
                self.narrow,
                None if mode is None else ieee or mode & RESULTS == RESULTS,
                None if mode is None else not mode & F32,
            )
            for (at, _), mode in zip(self.code, modes, strict=True)
        }

    def _denormals(self) -> Sequence[int | None]:
        """The mode of denormals ahead of each instruction, None where it may be several.

        Told where all that leaves the kernel's own mode comes back to it in the same straight line.
        """
        own = self.resources >> 16 & 15
        found: list[int | None] = []
        now, unknown = own, [None] * len(self.code)
        targets = {target_of(at, code) for at, code in self.code}
        for at, code in self.code:
            if now != own and (at in targets or code.name.startswith(("s_cbranch", "s_branch"))):
                return unknown
            if code.name.startswith(("s_setpc", "s_swappc", "s_call", "s_subvector", "s_rfe")):
                return unknown
            found.append(now)
            after = denormals_after(code, now)
            if after is None:
                return unknown
            now = after
        return found


def target_of(at: int, code: Code) -> int:
    """Return the target of a relative branch; -1 for other instructions."""
    if not code.name.startswith(("s_cbranch", "s_branch")):
        return -1
    offset = code.get(0, 16)
    return at + 4 + 4 * (offset - (offset >> 15 << 16))


def denormals_after(code: Code, before: int) -> int | None:
    """The mode of denormals behind an instruction, None where it cannot be told."""
    value = code.get(0, 16)
    if code.name == "s_denorm_mode":
        return value & 15
    if not code.name.startswith("s_setreg") or value & 63 != MODE:
        return before
    low, high = (value >> 6 & 31) - DENORMALS, (value >> 6 & 31) + (value >> 11) + 1 - DENORMALS
    if high <= 0 or low >= 4:
        return before
    if code.name != "s_setreg_imm32_b32" or low < 0 or high > 4:
        return None
    written = ((1 << high - low) - 1) << low
    return before & ~written | code.get(32, 32) << low & written


def functions(elf: bytes, arch: str) -> dict[str, Function]:
    """The kernels of an ELF64 file, by name."""
    named = symbols(elf)
    notes = {k[".name"]: k for k in report._metadata(elf).get("amdhsa.kernels", [])}
    found = {}
    for name, (address, size) in named.items():
        if f"{name}.kd" not in named:
            continue
        described = offset_of(elf, named[f"{name}.kd"][0])
        resources = struct.unpack_from("<I", elf, described + 48)[0]
        properties = struct.unpack_from("<H", elf, described + 56)[0]
        first = offset_of(elf, address)
        words = struct.unpack_from(f"<{size // 4}I", elf, first)
        note = notes.get(name, {})
        threads, *others = note.get(".reqd_workgroup_size", (0,))
        halves = frozenset(
            a[".offset"] + 4
            for a in note.get(".args", ())
            if a[".value_kind"] == "global_buffer" and a[".size"] == 8
        )
        one_axis = threads if all(n == 1 for n in others) else 0
        code = decoded(arch, address, words)
        found[name] = Function(address, code, resources, properties, one_axis, halves)
    return found


def decoded(arch: str, start: int, words: Sequence[int]) -> list[tuple[int, Code]]:
    """Every instruction with its address."""
    found, at = [], 0
    while at < len(words):
        size = length_of(arch, words[at : at + 4])
        found.append((start + 4 * at, Code(arch, list(words[at : at + size]))))
        at += size
    return found


def symbols(elf: bytes) -> dict[str, tuple[int, int]]:
    """Addresses and sizes by name."""
    headers = struct.unpack_from("<Q", elf, 40)[0]
    size, count = struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, headers + size * n) for n in range(count)]
    found = {}
    for _, kind, _, _, offset, length, link, _, _, each in sections:
        if kind not in (2, 11):
            continue
        strings = sections[link][4]
        for at in range(offset, offset + length, each):
            name, _, _, _, value, extent = struct.unpack_from("<IBBHQQ", elf, at)
            text = re.compile(rb"[^\0]*").match(elf, strings + name)
            assert text is not None
            found[text[0].decode()] = (value, extent)
    return found


def offset_of(elf: bytes, address: int) -> int:
    """Return the file offset of an address of an ELF64 image."""
    headers = struct.unpack_from("<Q", elf, 32)[0]
    size, count = struct.unpack_from("<HH", elf, 54)
    for n in range(count):
        kind, _, offset, start, _, length = struct.unpack_from("<IIQQQQ", elf, headers + n * size)
        if kind == 1 and start <= address < start + length:
            return offset + address - start
    raise AssertionError(f"no segment holds {address:#x}")

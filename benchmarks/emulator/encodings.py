"""Fields of AMD machine code, read from the emulator's tables: what of an instruction lies where.

The tables were probed from LLVM's disassembler (native/isa/make_tables.py); nothing here decodes
meanings.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ISA = Path(__file__).resolve().parents[2] / "native" / "isa"
# the generation of an architecture, and its bit in the tables' last column
ARCHS = {
    "gfx90a": ("gfx9", 1), "gfx942": ("gfx9", 2), "gfx950": ("gfx9", 4),
    "gfx1100": ("gfx11", 1), "gfx1151": ("gfx11", 2), "gfx1201": ("gfx12", 1),
}  # fmt: skip
_OP = re.compile(r'OP\((\w+), (\d+), "(\w+)", "([^"]*)", (\d+)\)')
# values of the first source field that announce another word: SDWA, DPP and DPP8
ESCAPES = (249, 250, 233, 234)
LITERAL = 255


@dataclass(frozen=True)
class Opcode:
    """A mnemonic of a format, and the operands it has: letter, size and mark of each."""

    format: str
    code: int
    name: str
    operands: tuple[str, ...]

    @property
    def letters(self) -> str:
        return "".join(o[0] for o in self.operands)


@functools.cache
def _layouts() -> Any:
    spec = importlib.util.spec_from_file_location("mgx_isa_formats", ISA / "formats.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@functools.cache
def formats(arch: str) -> tuple[Any, ...]:
    """The layouts of an architecture, in the order in which they are matched."""
    return tuple(_layouts().GENERATIONS[ARCHS[arch][0]][0])


@functools.cache
def opcodes(arch: str) -> dict[str, dict[int, Opcode]]:
    """Return an architecture's opcodes, by format and number."""
    generation, bit = ARCHS[arch]
    found: dict[str, dict[int, Opcode]] = {}
    for kind, code, name, operands, archs in _OP.findall((ISA / f"{generation}.inc").read_text()):
        if int(archs) & bit:
            found.setdefault(kind, {})[int(code)] = Opcode(
                kind, int(code), name, tuple(operands.split())
            )
    return found


@dataclass(frozen=True)
class Part:
    """An opcode with its layout: an instruction, or one of the two of a pair."""

    layout: Any
    opcode: Opcode


class Code:
    """An instruction's words as one number: fields are read and replaced by bit and width."""

    # facts: what holds where it runs (kernels.py); known: bits of registers ahead (known_bits.py)
    def __init__(self, arch: str, words: list[int], facts: Any = None, known: Any = None) -> None:
        self.arch, self.size, self.facts, self.known = arch, len(words), facts, known or {}
        self.bits = sum(w << 32 * n for n, w in enumerate(words))
        self.parts = self._parts()

    def _parts(self) -> list[Part]:
        found = []
        for layout in formats(self.arch):
            if self.bits & layout.mask != layout.match:
                continue
            if found and not found[0].layout.name.startswith("VOPD"):
                break
            code = self.get(*layout.opcode)
            found.append(Part(layout, opcodes(self.arch)[layout.name][code]))
            if layout.name != "VOPDX":
                break
        assert found, f"no format has these bits: {self.bits:x}"
        return found

    @property
    def name(self) -> str:
        return self.parts[0].opcode.name

    def get(self, bit: int, width: int) -> int:
        return self.bits >> bit & ((1 << width) - 1)

    def replaced(self, bit: int, width: int, value: int) -> int:
        """All bits, with another value in a field."""
        mask = ((1 << width) - 1) << bit
        return (self.bits & ~mask) | (value << bit & mask)

    def field(self, part: Part, letter: str) -> tuple[str, int, int]:
        """Kind, bit and width of an operand's field."""
        if part.layout.name == "VOPDY" and letter == "d":
            return "y", 49, 7  # half of the number: its last bit is not X's
        return part.layout.fields[letter]

    def escape(self, part: Part) -> int:
        """The first source, where it stands for an SDWA or DPP word; else 0."""
        name = part.layout.name
        if not name.startswith("VOP") or name.startswith("VOPD") or "a" not in part.opcode.letters:
            return 0
        kind, bit, width = self.field(part, "a")
        value = self.get(bit, width)
        return value if kind == "r" and value in ESCAPES else 0

    def has_literal(self, part: Part) -> bool:
        """Return whether a 32-bit constant is the last word."""
        if any(o.startswith("K") for o in part.opcode.operands):
            return True
        for letter in part.opcode.letters:
            if letter not in part.layout.fields:
                continue
            kind, bit, width = self.field(part, letter)
            memory = part.layout.name in ("SMEM", "MUBUF", "FLAT", "GLOBAL", "SCRATCH", "DS")
            if kind in "rs" and not memory and letter != "d" and self.get(bit, width) == LITERAL:
                return True
        return False

    def words(self, bits: int) -> bytes:
        return bits.to_bytes(4 * self.size, "little")


def length_of(arch: str, words: Sequence[int]) -> int:
    """Return the number of words of the instruction that begins with the first."""
    code = Code(arch, list(words))
    more = [code.has_literal(p) or code.escape(p) for p in code.parts]
    return max(p.layout.words for p in code.parts) + any(more)

"""Changes of an instruction that leave its results equal for all operands.

Each rule is from the instruction set, and asks for nothing but the instruction's own words and what
its kernel's descriptor and mode say (kernels.py). mutants.py draws again where one holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.emulator.encodings import Code, Part
from benchmarks.emulator.kernels import Facts

# these differ in the exceptions that they signal: an integer division by 0 for one by 0
SAME_RESULT = {"v_rcp_iflag_f32": "v_rcp_f32", "v_rcp_f32": "v_rcp_iflag_f32"}
# numbers of f32 in, a number of f32 out: what MODE says of denormals is done to each operand.
# Minima, comparisons, selections and moves are left out
ARITHMETIC = re.compile(r"v_(dual_)?(add|sub|subrev|mul|fma|fmac|fmaak|fmamk)_f32")
LEAST_NORMAL = 0x00800000
SIGN = 0x80000000


def same_opcode(old: str, new: str) -> bool:
    """Return whether two instructions compute the same results."""
    return SAME_RESULT.get(old) == new


def inline(value: int) -> int | None:
    """The bits of f32 that an inline constant is; None for a register or a literal."""
    if 128 <= value <= 192:
        return value - 128
    if 193 <= value <= 208:
        return (192 - value) % 2**32
    floats = {240: 0x3F000000, 242: 0x3F800000, 244: 0x40000000, 246: 0x40800000}
    if 240 <= value <= 247:
        return floats[value & ~1] | (SIGN if value & 1 else 0)
    return 0x3E22F983 if value == 248 else None


def both_flushed(facts: Facts, name: str, old: int, new: int) -> bool:
    """Return whether two constants of f32 are the same 0 where denormal operands are flushed."""
    if not facts.flushes or not ARITHMETIC.fullmatch(name):
        return False
    return old & SIGN == new & SIGN and max(old & ~SIGN, new & ~SIGN) < LEAST_NORMAL


def is_positive(code: Code, part: Part, letter: str) -> bool:
    """Return whether a source is an inline constant that is positive as f32 and as f16."""
    kind, bit, width = code.field(part, letter)
    value = code.get(bit, width)
    return kind == "r" and (128 <= value <= 192 or value in (240, 242, 244, 246, 248))


def unread_rows(facts: Facts) -> tuple[int, ...]:
    """The bits of a DPP word that are for rows of lanes which a wave of 32 does not have."""
    return (30, 31) if facts.narrow else ()


def is_count(name: str, letter: str) -> bool:
    """Return whether an operand counts the places of a 32-bit shift: five bits of it are read."""
    if re.fullmatch(r"s_(lshl|lshr|ashr)_[bi]32|v_(lshl_add|lshl_or)_[bu]32", name):
        return letter == "b"
    if re.fullmatch(r"v_(lshl|lshr|ashr)rev_[bi]32", name):
        return letter == "a"
    if re.fullmatch(r"v_bfe_[iu]32", name):
        return letter in "bc"
    return name == "v_add_lshl_u32" and letter == "c"


def unread_bits(name: str, places: Sequence[str]) -> int:
    """The bits of a constant that an instruction does not read, by the sources that it stands for:
    of a field all but its first bit and its width, of a product of 24 bits the ones above."""
    if name in ("s_bfe_u32", "s_bfe_i32") and list(places) == ["b"]:
        return ~0x7F001F
    short = re.fullmatch(r"v_(mul|mul_hi|mad)_[iu]32_[iu]24", name)
    return ~0xFFFFFF if short and places and "c" not in places else 0


def counted_bits(name: str) -> int:
    """The bits that a wait of gfx12 for accesses of one kind, or two, reads of its constant: the
    counters have so many (LLVM's AMDGPUUsage, the RDNA 4 guide)."""
    widths = {"s_wait_kmcnt": 5, "s_wait_expcnt": 3, "s_wait_bvhcnt": 3}
    if name.endswith(("loadcnt_dscnt", "storecnt_dscnt")):
        return 0x3F3F
    if not name.endswith("cnt"):
        return 0xFFFF
    return (1 << widths.get(name, 6)) - 1

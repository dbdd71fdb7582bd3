"""Results that no path reads: compilers leave none, and damaged code has them.

Liveness of registers over a kernel's paths. In doubt a register is read and not written over, so
that what is reported is certain: an instruction whose results nothing reads, whatever the input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from benchmarks.emulator.encodings import Code, Part
from benchmarks.emulator.kernels import Function, functions, offset_of, symbols, target_of
from benchmarks.emulator.known_bits import ENDS, EXEC, VECTOR, paths

VCC, SCC = 106, -1
MEMORY = ("SMEM", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF")
# formats whose written and read registers are known; the others only read
PLAIN = ("VOP1", "VOP2", "VOP3", "VOP3P", "VOPC", "VOPDX", "VOPDY", "SOP1", "SOP2", "SOPC", "SOPK")
# further instructions that overwrite all bits of their result's registers
WHOLE = re.compile(
    r"v_(wmma|mfma)_(f32|i32)|s_(buffer_)?load"
    r"|(ds|global|buffer|flat)_(load|read)(?!.*(d16|lds)).*(b32|b64|b96|b128|dword|[iu]16|[iu]8)"
)
# instructions that keep a part of a result's register or add to it, or have other effects
KEEPS = re.compile(r".*(fmac|_mac_|dot\d+c|mix|lane|perm|swap|_d16|16|_sat_|_i8|_u8|f8).*")
ACTS = re.compile(r".*(mfma|wmma|smfmac|swmmac|acc|cmpx|saveexec|wrexec|movrel|getreg|setreg|getpc|"
                  r"pipeflush|nop|readfirst|sendmsg|memtime|realtime|_vskip|waitcnt|version|cmov|"
                  r"cmpk|clrexcp|barrier).*")  # fmt: skip
# scalar instructions that leave the condition as it is; of others it is their result as well
NO_CONDITION = re.compile(r"s_(mov_|movk|mul_|cselect|pack|bfm|sext|brev|ff|flbit|ctz|cls|clz|"
                          r"bitset|bitreplicate|.*_f(16|32)).*")  # fmt: skip
READS_CONDITION = re.compile(r"s_(cselect|addc|subb|cbranch_scc|cmov|add_co_ci|sub_co_ci).*")


@dataclass
class Use:
    """Registers that an instruction, or one of a pair, reads and writes."""

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    plain: bool = False  # without other effects
    over: bool = False  # nothing is left of what the written registers held


def use_of(code: Code, part: Part, wide: bool) -> Use:
    """Return the register uses of an instruction. `wide`: a lane mask is in two scalar
    registers.
    """
    name, layout = part.opcode.name, part.layout
    use = Use()
    stores = layout.name in MEMORY and not re.search(r"load|read|swizzle|permute", name)
    ahead = True  # position before the sources: vcc is a result there
    for operand in part.opcode.operands:
        letter = operand[0]
        if letter == "C":
            (use.writes if ahead else use.reads).update({VCC, VCC + 1})
            continue
        if letter in "abcxy":
            ahead = False
        if letter not in layout.fields or layout.fields[letter][0] == "k":
            continue
        result = letter == "d" or (letter == "s" and layout.name == "VOP3")
        registers = _registers(code, part, operand, wide)
        if result and not stores:
            use.writes |= registers
        kept = KEEPS.fullmatch(name) and not WHOLE.match(name)
        if not result or stores or kept or code.escape(part):
            use.reads |= registers
    if layout.name in ("SOP1", "SOP2", "SOPC", "SOPK") and not NO_CONDITION.fullmatch(name):
        use.writes.add(SCC)
    if READS_CONDITION.fullmatch(name):
        use.reads.add(SCC)
    if "vcc" in name or "div_fmas" in name or name == "v_dual_cndmask_b32":
        use.reads |= {VCC, VCC + 1}
    if layout.name == "SOPK" and not name.startswith("s_movk"):
        use.reads |= use.writes
    use.plain = layout.name in PLAIN and not ACTS.fullmatch(name) and bool(use.writes)
    use.over = WHOLE.match(name) is not None or (
        use.plain and not KEEPS.fullmatch(name) and not code.escape(part)
    )
    return use


def _registers(code: Code, part: Part, operand: str, wide: bool) -> set[int]:
    """The registers of an operand, of a scalar source of a vector instruction one more."""
    letter, size = operand[0], operand[1:2]
    kind, bit, width = code.field(part, letter)
    value = code.get(bit, width)
    count = {"0": 2, "": 1, "g": 16, "w": 32}.get(size) or int(size, 32)
    if letter == "a" and code.escape(part):
        kind, value = "v", code.get(32 * part.layout.words, 8)
    if kind == "y":
        value = value << 1 | (~code.get(56, 1) & 1)
    elif kind in "bq":
        value *= 2 if kind == "b" else 4
        count = max(count, 2 if kind == "b" else 4)
    elif kind == "r" and value >= VECTOR:
        kind, value = "v", value - VECTOR
    scalar = kind in "sbqr" or operand.endswith("S") or (letter == "s" and kind != "v")
    if scalar:
        # the second word of a mask that is read, where the tables assume 32 lanes
        more = wide and part.layout.name.startswith("VOP") and letter in "abc" and count == 1
        return set(range(value, value + count + more)) if value < 128 else set()
    return set(range(VECTOR + value, VECTOR + value + count))


def unread(function: Function) -> list[str]:
    """Return the instructions whose results nothing reads. None if a kernel cannot be followed."""
    ahead = {} if _has_both_sizes(function) and not function.narrow else paths(function)
    code = [(at, one) for at, one in function.code if at in ahead]
    places = {at: n for n, (at, _) in enumerate(code)}
    uses = [[use_of(one, p, not function.narrow) for p in one.parts] for _, one in code]
    after: list[list[int]] = []
    for n, (at, one) in enumerate(code):
        following = [] if one.name in ENDS else [n + 1]
        if one.name.startswith(("s_branch", "s_cbranch")):
            following.append(places[target_of(at, one)])
        after.append([m for m in following if m < len(code)])
    live: list[frozenset[int]] = [frozenset()] * (len(code) + 1)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(code))):
            behind = frozenset().union(*(live[m] for m in after[n]))
            now = _ahead(uses[n], behind, ahead[code[n][0]].whole)
            if now != live[n]:
                live[n], changed = now, True
    found = []
    for n, (at, one) in enumerate(code):
        behind = frozenset().union(*(live[m] for m in after[n]))
        for use, part in zip(uses[n], one.parts, strict=True):
            followed = all(r >= VECTOR or r < VCC + 2 for r in use.writes)
            # LLVM leaves copies of exec where it need not come back
            if use.plain and followed and not use.writes & behind and not use.reads & set(EXEC):
                found.append(f"nothing reads the result of {part.opcode.name} at {at:#x}")
    return found


def unread_in(elf: bytes, arch: str, place: int, code: bytes) -> str:
    """Return the unread results of the kernel around an offset of a file with replaced bytes;
    '' where all are read, or where the bytes are not instructions."""
    damaged = elf[:place] + code + elf[place + len(code) :]
    for name, (address, size) in symbols(elf).items():
        if f"{name}.kd" not in symbols(elf):
            continue
        if offset_of(elf, address) <= place < offset_of(elf, address) + size:
            try:
                return "; ".join(unread(functions(damaged, arch)[name])[:3])
            except (AssertionError, KeyError):
                return ""
    return ""


def _has_both_sizes(function: Function) -> bool:
    """Return whether the tables' sizes of masks are those of 32 lanes, though waves may have 64."""
    return not function.code[0][1].arch.startswith("gfx9")


def _ahead(uses: list[Use], behind: frozenset[int], whole: bool) -> frozenset[int]:
    """Return the registers that are read after an instruction begins."""
    now = set(behind)
    for use in uses:
        if use.over:
            now -= {r for r in use.writes if r < VECTOR or whole}
    for use in uses:
        now |= use.reads
    return frozenset(now)

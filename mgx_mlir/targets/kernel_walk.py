"""The instructions that a wave executes, from a kernel's assembly.

Loop branches depend on scalar registers with known values: only those are computed. All lanes are
assumed active, and both sides of a divergent branch are executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

_LABEL = re.compile(r'^"?([A-Za-z_.$][\w.$-]*)"?:')
_INSTRUCTION = re.compile(r"^\t([a-z][a-z0-9_]*)(?:\s+([^;]*))?")
_ENCODING = re.compile(r"_(e32|e64|dpp|dpp8|sdwa|e64_dpp)$")
_PAIR = re.compile(r"^(s|ttmp)\[(\d+):(\d+)\]$")
_WORD = 0xFFFFFFFF
_DESCRIBED = re.compile(r"^\s*\.amdhsa_(kernel|user_sgpr_count)\s+(\S+)")
_ARCH = re.compile(r'^\s*\.amdgcn_target\s+"?[\w-]*--(gfx\w+)')
_GFX12 = "ttmp9"  # gfx12's register of a workgroup's number
_HEAD = 8  # instructions at the most that load arguments
LONGEST = 1_000_000  # limit of simulated instructions

# instructions that write scalar registers besides scalar ones
_TO_SCALAR = ("v_cmp", "v_readfirstlane", "v_readlane", "v_add_co", "v_sub_co", "v_addc", "v_subb",
              "v_mad_u64", "v_mad_i64", "v_div_scale", "v_mad_co")  # fmt: skip
_KEEP_SCC = ("s_mov", "s_load", "s_buffer", "s_wait", "s_barrier", "s_mul_i32", "s_mul_hi",
             "s_cselect", "s_nop", "s_branch", "s_cbranch", "s_delay", "s_clause", "s_set",
             "s_pack", "s_sendmsg", "s_endpgm", "s_sleep", "s_getpc", "s_brev", "s_ff1", "s_sext",
             "s_cmov", "s_code_end", "s_icache", "s_inst_prefetch")  # fmt: skip


@dataclass(frozen=True)
class AsmInstruction:
    """A line of assembly without its encoding's suffix."""

    name: str
    operands: tuple[str, ...]


@dataclass
class Code:
    """A function: its instructions and its labels."""

    instructions: list[AsmInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)  # label -> index of its instruction
    workgroup: str | None = None  # scalar register of a kernel with the workgroup's index in x


@dataclass(frozen=True)
class Walk:
    """The instructions that a wave runs, in order."""

    code: Code
    places: tuple[int, ...]  # indices into `code.instructions`
    exact: bool  # all backward branches depended on known values


def functions(lines: Iterable[str]) -> dict[str, Code]:
    """Return the code of each function of an assembly file, by name."""
    found: dict[str, Code] = {}
    code: Code | None = None
    kernel, arch = "", ""
    for line in lines:
        if (described := _DESCRIBED.match(line)) is not None:
            if described[1] == "kernel":
                kernel = described[2].strip('"')
            elif kernel in found:
                given = _GFX12 if arch.startswith("gfx12") else f"s{int(described[2])}"
                found[kernel].workgroup = given
        elif (target := _ARCH.match(line)) is not None:
            arch = target[1]
        if line.startswith("\t.section"):
            code = None
            continue
        label = _LABEL.match(line)
        if label is not None and label[1].startswith("."):
            if code is not None:
                code.labels[label[1]] = len(code.instructions)
            continue
        if label is not None:
            code = found.setdefault(label[1], Code())
            continue
        m = _INSTRUCTION.match(line)
        if m is not None and code is not None:
            operands = tuple(o.strip() for o in (m[2] or "").split(",") if o.strip())
            code.instructions.append(AsmInstruction(_ENCODING.sub("", m[1]), operands))
    return {name: code for name, code in found.items() if code.instructions}


def walk(code: Code, known: Mapping[str, int] | None = None) -> Walk:
    """Simulate one wave through a function. known: initial values of scalar registers."""
    state = _Scalars()
    state.known.update(known or {})
    places: list[int] = []
    at, exact = _start(code), True
    while at < len(code.instructions) and len(places) < LONGEST:
        i = code.instructions[at]
        places.append(at)
        at += 1
        if i.name == "s_endpgm":
            return Walk(code, tuple(places), exact)
        if i.name.startswith(("s_branch", "s_cbranch")):
            to = code.labels.get(i.operands[0]) if i.operands else None
            if to is None:
                exact = False
                continue
            back = to < at
            taken = state.taken(i.name)
            if taken is None:
                # divergent lanes: both sides of a forward branch, one iteration of a loop
                taken = not back and i.name == "s_cbranch_execnz"
                exact = exact and not back
            if taken:
                at = to
            continue
        state.run(i)
    return Walk(code, tuple(places), exact and len(places) < LONGEST)


def _start(code: Code) -> int:
    """Return the first instruction of a wave: after the argument loads that the hardware
    preloads.
    """
    for i in code.instructions[:_HEAD]:
        if i.name == "s_branch":
            return code.labels.get(i.operands[0], 0) if i.operands else 0
        if not i.name.startswith(("s_load", "s_waitcnt")):
            break
    return 0


class _Scalars:
    """Scalar registers whose numbers are known."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.scc: bool | None = None

    def taken(self, name: str) -> bool | None:
        """Return whether a branch is taken; None where that is not known."""
        if name == "s_branch":
            return True
        if name in ("s_cbranch_scc0", "s_cbranch_scc1"):
            return None if self.scc is None else self.scc == name.endswith("1")
        if name in ("s_cbranch_vccz", "s_cbranch_vccnz"):
            lanes = self.read("vcc", 2)
            return None if lanes is None else (lanes == 0) == (name == "s_cbranch_vccz")
        return None

    def read(self, operand: str, words: int = 1, *, short: bool = False) -> int | None:
        """Return the number that an operand holds. `short`: a literal is of 16 bits with a sign."""
        try:
            number = int(operand, 0)
            if short and number >= 1 << 15:
                number -= 1 << 16
            return number & ((1 << 32 * words) - 1)
        except ValueError:
            pass
        if operand in ("exec", "exec_lo"):
            return (1 << 32 * words) - 1  # all lanes are active
        parts = [self.known.get(r) for r in registers(operand)[:words]]
        if not parts or None in parts:
            return None
        return sum((p or 0) << 32 * n for n, p in enumerate(parts))

    def write(self, operand: str, value: int | None) -> None:
        for n, r in enumerate(registers(operand)):
            if value is None:
                self.known.pop(r, None)
            else:
                self.known[r] = value >> 32 * n & _WORD

    def run(self, i: AsmInstruction) -> None:
        """Execute a scalar instruction; forget registers that any other one overwrites."""
        name, operands = i.name, i.operands
        if not name.startswith("s_"):
            if name.startswith(_TO_SCALAR):
                for o in operands[:2]:
                    self.write(o, None)
                if name.startswith("v_cmp"):
                    self.write("vcc", None)
            return
        if name.startswith(("s_cmp_", "s_cmpk_")):
            self._compare(name, operands)
            return
        head, _, kind = name.rpartition("_")
        words = 2 if kind in ("b64", "u64", "i64") else 1
        if head in ("s_mov", "s_movk") and len(operands) == 2:
            self.write(operands[0], self.read(operands[1], words, short=head == "s_movk"))
            return
        if head == "s_cselect" and len(operands) == 3:
            chosen = None if self.scc is None else operands[1 if self.scc else 2]
            self.write(operands[0], None if chosen is None else self.read(chosen, words))
            return
        if head in ("s_max", "s_min") and kind == "i32":
            self._chosen(head, operands)
            return
        compute = _ARITHMETIC.get(head)
        if compute is not None and len(operands) >= 2:
            a, b = (self.read(o, words) for o in operands[-2:])
            if head in ("s_addk", "s_addk_co", "s_mulk"):
                a, b = self.read(operands[0]), self.read(operands[1], short=True)
            value = None
            # an endless loop is where no lane ever arrives
            endless = words == 2 and operands[1:] == ("exec", "-1")
            if a is not None and b is not None and not endless:
                value = compute(a, b) & ((1 << 32 * words) - 1)
            self.write(operands[0], value)
            if head in _BITS:
                self.scc = None if value is None else value != 0
            elif not name.startswith(_KEEP_SCC):
                self.scc = None
            return
        for o in operands[:1]:
            self.write(o, None)
        if not name.startswith(_KEEP_SCC):
            self.scc = None

    def _chosen(self, head: str, operands: tuple[str, ...]) -> None:
        """Write the smaller or larger of two signed numbers."""
        a, b = (self.read(o) for o in operands[-2:])
        value: int | None = None
        if a is not None and b is not None:
            value = _ARITHMETIC[head]((a ^ _SIGN) - _SIGN, (b ^ _SIGN) - _SIGN) & _WORD
        self.write(operands[0], value)
        self.scc = None

    def _compare(self, name: str, operands: tuple[str, ...]) -> None:
        _, how, kind = name.removeprefix("s_").split("_", 2)
        words = 2 if kind.endswith("64") else 1
        short = name.startswith("s_cmpk") and kind.startswith("i")
        a, b = (self.read(o, words, short=short) for o in operands[:2])
        if a is None or b is None or how not in _COMPARE:
            self.scc = None
            return
        if kind.startswith("i"):
            half = 1 << (32 * words - 1)
            a, b = (x - 2 * half if x >= half else x for x in (a, b))
        self.scc = _COMPARE[how](a, b)


def registers(operand: str) -> list[str]:
    """Return the scalar registers that an operand names."""
    if operand in ("vcc", "exec"):
        return [f"{operand}_lo", f"{operand}_hi"]
    pair = _PAIR.match(operand)
    if pair is not None:
        return [f"{pair[1]}{n}" for n in range(int(pair[2]), int(pair[3]) + 1)]
    return [operand] if re.fullmatch(r"s\d+|ttmp\d+|m0|vcc_lo|vcc_hi", operand) else []


_BITS = ("s_and", "s_or", "s_xor", "s_andn2", "s_and_not1", "s_lshl", "s_lshr")
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "s_add": lambda a, b: a + b,
    "s_addk": lambda a, b: a + b,
    "s_addk_co": lambda a, b: a + b,
    "s_add_co": lambda a, b: a + b,
    "s_sub": lambda a, b: a - b,
    "s_sub_co": lambda a, b: a - b,
    "s_mul": lambda a, b: a * b,
    "s_mulk": lambda a, b: a * b,
    "s_and": lambda a, b: a & b,
    "s_andn2": lambda a, b: a & ~b,
    "s_and_not1": lambda a, b: a & ~b,
    "s_or": lambda a, b: a | b,
    "s_xor": lambda a, b: a ^ b,
    "s_lshl": lambda a, b: a << (b & 63),
    "s_lshr": lambda a, b: a >> (b & 63),
    "s_max": max,
    "s_min": min,
}
_SIGN = 1 << 31
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}

__all__ = ["AsmInstruction", "Code", "Walk", "functions", "registers", "walk"]

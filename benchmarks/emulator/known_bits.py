"""Bits of registers that are the same in every run: read from the code, for any input.

A pair of masks says of a register which of its 32 bits are 0 and which are 1. They are carried
along all paths of a kernel; where paths meet, what both say is left. What an instruction does that
is not in RULES leaves nothing known of what it writes. A vector register's bits hold for all lanes
that the wave started with: what is written while some of them are switched off is only believed
together with what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.emulator.encodings import LITERAL, Code, Part
from benchmarks.emulator.identities import inline
from benchmarks.emulator.kernels import Function, target_of

ALL = 0xFFFFFFFF
VECTOR = 256  # registers: a scalar one's number, a vector one's plus this
SCALARS = 106  # vcc and what is behind it is not followed
EXEC = (126, 127)
ENDS = ("s_endpgm", "s_branch")
# instructions that write registers they do not name, or branch to a computed address
OPAQUE = re.compile(r"s_(setpc|swappc|call|rfe|movrel|subvector).*|.*wrexec.*|.*(swap|movrel).*")


@dataclass(frozen=True)
class Bits:
    """Bits of a word that are known to be 0 or 1, and whether it is not negative as f32: its sign
    is 0, or it is NaN with either sign."""

    zeros: int = 0
    ones: int = 0
    magnitude: bool = False

    @property
    def is_magnitude(self) -> bool:
        return self.magnitude or bool(self.zeros >> 31)

    @property
    def most(self) -> int:
        return ALL & ~self.zeros

    @property
    def value(self) -> int | None:
        """The number, where all of it is known."""
        return self.ones if self.zeros | self.ones == ALL else None


NOTHING = Bits()


def number(value: int) -> Bits:
    value &= ALL
    return Bits(ALL & ~value, value)


def either(a: Bits, b: Bits) -> Bits:
    zeros, magnitude = a.zeros & b.zeros, a.is_magnitude and b.is_magnitude
    return Bits(zeros, a.ones & b.ones, magnitude and not zeros >> 31)


def below(limit: int) -> Bits:
    """Return the known bits of a number that is at most `limit`."""
    return Bits(ALL & ~((1 << limit.bit_length()) - 1)) if limit <= ALL else NOTHING


def both(a: Bits, b: Bits) -> Bits:
    return Bits(a.zeros | b.zeros, a.ones & b.ones)


def any_of(a: Bits, b: Bits) -> Bits:
    return Bits(a.zeros & b.zeros, a.ones | b.ones)


def left(a: Bits, by: Bits) -> Bits:
    if by.value is None:
        return NOTHING
    n = by.value & 31
    return Bits((a.zeros << n | (1 << n) - 1) & ALL, a.ones << n & ALL)


def right(a: Bits, by: Bits) -> Bits:
    if by.value is None:
        return below(a.most)
    n = by.value & 31
    return Bits(a.zeros >> n | ALL & ~(ALL >> n), a.ones >> n)


def field_of(a: Bits, first: int, width: int) -> Bits:
    return both(right(a, number(first)), number((1 << width) - 1)) if width else number(0)


def total(a: Bits, b: Bits) -> Bits:
    """A sum: its low bits are known as far as both addends' are, its high ones by its size."""
    known = (a.zeros | a.ones) & (b.zeros | b.ones)
    low = (known ^ (known + 1)) >> 1  # ones below the first that is not known
    exact, high = (a.ones + b.ones) & low, below(a.most + b.most)
    return Bits(low & ~exact | high.zeros, exact)


def product(a: Bits, b: Bits) -> Bits:
    if a.value is not None and b.value is not None:
        return number(a.value * b.value)
    shift = min(_trailing(a) + _trailing(b), 32)
    return Bits((1 << shift) - 1 | below(a.most * b.most).zeros)


def _trailing(a: Bits) -> int:
    return ((a.zeros ^ (a.zeros + 1)) >> 1).bit_length()


def _of_24(a: Bits) -> Bits:
    return both(a, number(0xFFFFFF))


RULES: dict[str, Callable[..., Bits]] = {
    "mov_b32": lambda a: a,
    "and_b32": both,
    "or_b32": any_of,
    "lshl_b32": left,
    "lshlrev_b32": lambda a, b: left(b, a),
    "lshr_b32": right,
    "lshrrev_b32": lambda a, b: right(b, a),
    "add_u32": total,
    "add_i32": total,
    "add_nc_u32": total,
    "mul_i32": product,
    "mul_lo_u32": product,
    "mul_u32_u24": lambda a, b: product(_of_24(a), _of_24(b)),
    "mad_u32_u24": lambda a, b, c: total(product(_of_24(a), _of_24(b)), c),
    "lshl_or_b32": lambda a, b, c: any_of(left(a, b), c),
    "lshl_add_u32": lambda a, b, c: total(left(a, b), c),
    "add_lshl_u32": lambda a, b, c: left(total(a, b), c),
    "and_or_b32": lambda a, b, c: any_of(both(a, b), c),
    "or3_b32": lambda a, b, c: any_of(any_of(a, b), c),
    "add3_u32": lambda a, b, c: total(total(a, b), c),
    "min_u32": lambda a, b: below(min(a.most, b.most)),
}


# the sources that must be no negative numbers so that a result is none
POSITIVE = {
    "exp_f32": "", "cvt_f32_u32": "", "rcp_f32": "a", "rcp_iflag_f32": "a", "rsq_f32": "a",
    "sqrt_f32": "a", "ldexp_f32": "a", "add_f32": "ab", "min_f32": "ab", "max_f32": "ab",
    "max3_f32": "abc", "mul_f32": "ab", "fma_f32": "abc", "fmac_f32": "abd", "div_scale_f32": "a",
    "div_fmas_f32": "abc", "div_fixup_f32": "abc", "cndmask_b32": "ab",
}  # fmt: skip


def _extracted(a: Bits, b: Bits) -> Bits:
    """s_bfe_u32: the first bit and the width in one number."""
    return NOTHING if b.value is None else field_of(a, b.value & 31, min(b.value >> 16 & 127, 32))


def _cut(a: Bits, b: Bits, c: Bits) -> Bits:
    """v_bfe_u32."""
    if b.value is None or c.value is None:
        return NOTHING
    return field_of(a, b.value & 31, c.value & 31)


State = dict[int, Bits]


@dataclass
class Ahead:
    """The state before an instruction.

    whole: every lane that the wave started with is on. saved: scalar registers (the first of a
    pair) that hold that mask; parts: those that hold it or some of its lanes. arguments: the first
    of a pair that holds their address.
    """

    known: State
    whole: bool
    saved: frozenset[int]
    parts: frozenset[int]
    arguments: int | None

    def met(self, other: Ahead) -> Ahead:
        known = {r: either(b, other.known[r]) for r, b in self.known.items() if r in other.known}
        return Ahead(
            {r: b for r, b in known.items() if b != NOTHING},
            self.whole and other.whole,
            self.saved & other.saved,
            self.parts & other.parts,
            self.arguments if self.arguments == other.arguments else None,
        )

    def copy(self) -> Ahead:
        return Ahead(dict(self.known), self.whole, self.saved, self.parts, self.arguments)


class Unknown(Exception):
    """Raised for a kernel that cannot be analysed."""


def known_bits(function: Function) -> dict[int, State]:
    """Return the known bits before each instruction, by address; empty if not analysed."""
    return {at: ahead.known for at, ahead in paths(function).items()}


def paths(function: Function) -> dict[int, Ahead]:
    """Return the state before each reachable instruction, by address; empty if not analysed."""
    code, places = function.code, {at: n for n, (at, _) in enumerate(function.code)}
    start = Ahead({VECTOR: Bits(0xC0000000)}, True, frozenset(), frozenset(), function.arguments)
    if function.threads:
        start.known[VECTOR] = below(function.threads - 1)
    ahead: dict[int, Ahead] = {0: start}
    left_over = [0]
    try:
        while left_over:
            n = left_over.pop()
            path = ahead[n].copy()
            at, one = code[n]
            step(path, one, function)
            after = [] if one.name in ENDS or one.name == "s_code_end" else [n + 1]
            if one.name.startswith(("s_branch", "s_cbranch")):
                if target_of(at, one) not in places:
                    raise Unknown
                after.append(places[target_of(at, one)])
            for m in after:
                if m >= len(code):
                    raise Unknown
                before = ahead.get(m)
                now = path if before is None else before.met(path)
                if before is None or now != before:
                    ahead[m] = now
                    left_over.append(m)
    except Unknown:
        return {}
    return {code[n][0]: path for n, path in ahead.items()}


def step(path: Ahead, code: Code, function: Function) -> None:
    """Make what is known ahead of an instruction what is known behind it."""
    if OPAQUE.fullmatch(code.name):
        raise Unknown
    written: dict[int, Bits] = {}
    for part in code.parts:
        for first, count, bits in _results(path, code, part):
            for n in range(count):
                loaded = bits if count == 1 else _loaded(path, code, n, function)
                written[first + n] = loaded
    for register, bits in written.items():
        before = path.known.pop(register, NOTHING)
        value = bits if register < VECTOR or path.whole else either(bits, before)
        if value != NOTHING:
            path.known[register] = value
    saved, parts = path.saved, path.parts
    more = 0 if function.narrow else 1  # a mask of 64 lanes is in two registers
    path.saved, path.parts = (
        frozenset(s for s in held if s not in written and s + more not in written)
        for held in (saved, parts)
    )
    if path.arguments is not None and {path.arguments, path.arguments + 1} & written.keys():
        path.arguments = None
    _switch(path, code, saved, parts)


def _results(path: Ahead, code: Code, part: Part) -> list[tuple[int, int, Bits]]:
    """The registers that a part of an instruction writes: the first, how many, their bits."""
    found = []
    for operand in part.opcode.operands:
        letter = operand[0]
        if letter not in "ds" or (letter == "s" and not part.layout.name.startswith("VOP3")):
            continue
        if letter not in part.layout.fields:
            continue
        kind, bit, width = code.field(part, letter)
        value, count = code.get(bit, width), _count(operand)
        vector = kind in "vy" and letter == "d" and not operand.endswith("S")
        if kind == "y":  # the other half of an even or odd number than X's
            value = value << 1 | (~code.get(56, 1) & 1)
        if vector:
            found.append((VECTOR + value, count, _computed(path, code, part)))
        elif value < SCALARS:
            found.append((value, max(count, 2), NOTHING) if operand.endswith("S") or letter == "s"
                         else (value, count, _computed(path, code, part)))  # fmt: skip
    return found


def _count(operand: str) -> int:
    size = operand[1:2]
    return {"0": 1, "": 1, "g": 16, "w": 32}.get(size) or int(size, 32)


def _computed(path: Ahead, code: Code, part: Part) -> Bits:
    """Return the known bits of a 32-bit result."""
    name = re.sub(r"^(v_dual|[vs])_", "", part.opcode.name)
    if part.opcode.name == "s_movk_i32":
        value = code.get(0, 16)
        return number(value - (value >> 15 << 16))
    rule = RULES.get(name)
    if part.opcode.name == "s_bfe_u32":
        rule = _extracted
    elif part.opcode.name == "v_bfe_u32":
        rule = _cut
    if code.escape(part):
        return NOTHING
    if rule is None:
        return Bits(magnitude=is_magnitude(path.known, code, part))
    if "clamp" in _set(code, part):
        return NOTHING
    letters = [o for o in part.opcode.operands if o[0] in "abc"]
    if any(o[1:] not in ("", "1") for o in letters):
        return NOTHING
    return rule(*(source(path.known, code, part, o[0]) for o in letters))


def is_magnitude(known: State, code: Code, part: Part) -> bool:
    """Return whether an operation of f32 gives no negative number."""
    name = re.sub(r"^v_(dual_)?", "", part.opcode.name)
    letters = POSITIVE.get(name)
    if letters is None:
        return False
    if name in ("mul_f32", "fma_f32", "fmac_f32") and _same_factors(code, part):
        letters = letters[2:]
    return all(is_positive_source(known, code, part, x) for x in letters)


def _same_factors(code: Code, part: Part) -> bool:
    """Return whether an operation squares a register: with one sign, or none."""
    (kind, *first), (other, *second) = code.field(part, "a"), code.field(part, "b")
    x, y = code.get(*first), code.get(*second) + (VECTOR if other == "v" and kind == "r" else 0)
    bits = part.layout.modifiers
    signs = [code.get(*bits[m]) & 3 for m in ("neg", "abs") if m in bits]
    return x == y and x >= VECTOR and all(s in (0, 3) for s in signs)


def is_positive_source(known: State, code: Code, part: Part, letter: str) -> bool:
    bits, place = part.layout.modifiers, "abc".find(letter)
    neg, magnitude = (
        bool(m in bits and place >= 0 and code.get(*bits[m]) >> place & 1) for m in ("neg", "abs")
    )
    return not neg and (magnitude or held(known, code, part, letter).is_magnitude)


def held(known: State, code: Code, part: Part, letter: str) -> Bits:
    """Return the known bits of a source, or of an accumulator: a result that is also read."""
    if letter != "d":
        return source(known, code, part, letter)
    kind, bit, width = code.field(part, "d")
    value = code.get(bit, width)
    if kind == "y":
        value = value << 1 | (~code.get(56, 1) & 1)
    return known.get(VECTOR + value, NOTHING)


def _set(code: Code, part: Part) -> set[str]:
    return {m for m, place in part.layout.modifiers.items() if code.get(*place)}


def source(known: State, code: Code, part: Part, letter: str) -> Bits:
    """Return the known bits of a 32-bit source."""
    kind, bit, width = code.field(part, letter)
    value = code.get(bit, width)
    if kind == "v":
        return known.get(VECTOR + value, NOTHING)
    if kind not in "rs":
        return NOTHING
    if value >= 256 or value < SCALARS:
        return known.get(value, NOTHING)
    if value == LITERAL:
        return number(code.get(32 * (code.size - 1), 32))
    constant = inline(value)
    return NOTHING if constant is None else number(constant)


def _loaded(path: Ahead, code: Code, word: int, function: Function) -> Bits:
    """Return the known bits of an argument word: the high half of an address has 16 bits."""
    if not code.name.startswith("s_load_") or path.arguments is None:
        return NOTHING
    part = code.parts[0]
    base = code.get(*code.field(part, "b")[1:])
    if "soff" in part.layout.modifiers:
        plain = _set(code, part) & {"soff", "imm"} == {"imm"}
    else:
        plain = code.get(*code.field(part, "o")[1:]) == 124
    offset = code.get(*part.layout.modifiers["offset"]) + 4 * word
    if 2 * base != path.arguments or not plain or offset not in function.high_halves:
        return NOTHING
    return Bits(0xFFFF0000)


def _switch(path: Ahead, code: Code, saved: frozenset[int], parts: frozenset[int]) -> None:
    """Follow which lanes are on, of what registers held ahead of the instruction."""
    name, part = code.name, code.parts[0]
    if name.startswith("v_cmpx"):
        path.whole = False
        return
    if not name.startswith("s_") or "d" not in part.opcode.letters or "d" not in part.layout.fields:
        return
    result = code.get(*code.field(part, "d")[1:])
    sources = {
        code.get(*code.field(part, x)[1:])
        for x in "ab"
        if x in part.opcode.letters and x in part.layout.fields
    }
    inside = sources <= parts | {EXEC[0]}
    fewer = re.match(r"s_(and|andn2|and_not1)_b", name) and _first(code, part) in parts | {EXEC[0]}
    if "saveexec" in name:
        if not re.fullmatch(r"s_(and|andn2|and_not1)_saveexec_b(32|64)", name):
            raise Unknown
        path.parts |= {result}
        if path.whole:
            path.saved |= {result}
        path.whole = False
    elif result == EXEC[1]:
        raise Unknown
    elif re.match(r"s_(or|mov|xor)_b", name) and inside:
        all_on = not name.startswith("s_xor") and (
            sources & saved or (path.whole and EXEC[0] in sources)
        )
        _hold(path, result, bool(all_on))
    elif fewer:
        _hold(path, result, False)
    elif result == EXEC[0]:
        raise Unknown


def _hold(path: Ahead, result: int, whole: bool) -> None:
    """Lanes that the wave started with, all or some, become those that are on or are saved."""
    if result == EXEC[0]:
        path.whole = whole
    elif result < SCALARS:
        path.parts |= {result}
        if whole:
            path.saved |= {result}


def _first(code: Code, part: Part) -> int:
    return code.get(*code.field(part, "a")[1:])


def same_result(code: Code, part: Part, known: State) -> int:
    """The bits of a constant among the first two sources that the result does not depend on."""
    name = re.sub(r"^(v_dual|[vs])_", "", part.opcode.name)
    if name not in ("and_b32", "or_b32", "and_or_b32") or code.escape(part):
        return 0
    a, b = source(known, code, part, "a"), source(known, code, part, "b")
    other = b if _is_constant(code, part, "a") else a
    if name == "and_or_b32":
        return other.zeros | source(known, code, part, "c").ones
    return other.zeros if name == "and_b32" else other.ones


def _is_constant(code: Code, part: Part, letter: str) -> bool:
    kind, bit, width = code.field(part, letter)
    value = code.get(bit, width)
    return kind in "rs" and (value == LITERAL or inline(value) is not None)

"""Damaged machine code: one instruction of a program is changed, and the tests must see it.

What is drawn
  A population is every instruction address of the programs that ran at least once, on any of the
  inputs, in an undamaged run; each is equally likely (`draw`), whatever the program and however
  often it ran. `weighted=True` draws by how often it ran instead.
  Then one of the KINDS that the instruction has is drawn, each equally likely, and then what the
  kind leaves undetermined: which operand, register, bit or opcode, each equally likely.

What is drawn again
  Only what by the definition of the instruction set is the same program: the same words; operands
  exchanged that are equal, or of an operation that is commutative; a field that the instruction
  does not read; hints (HINTS) that are changed or become other hints; a wait for more; what
  identities.py says of an instruction in the mode that its kernel runs in; and what the code says
  of the bits that registers have in every run (known_bits.py): a mask's bit of what is 0 anyway,
  another register that holds the same constant.
  Then another kind of the same instruction is drawn; where none is left, another instruction.
  Nothing is drawn again because it is hard to see: s_nop, whose wait states the emulator does not
  look at, counts, and so do waits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.emulator import identities
from benchmarks.emulator.encodings import ARCHS, LITERAL, Code, Part, opcodes
from benchmarks.emulator.kernels import UNKNOWN, Facts, functions, offset_of
from benchmarks.emulator.known_bits import NOTHING, VECTOR, State, known_bits, same_result, source

# s_delay_alu, s_clause and their kin tell the hardware what is faster, and nothing else
HINTS = frozenset({
    "s_delay_alu", "s_clause", "s_setprio", "s_sleep", "s_inst_prefetch", "s_icache_inv",
    "s_set_inst_prefetch_distance", "s_incperflevel", "s_decperflevel", "s_ttracedata",
    "s_ttracedata_imm", "s_wakeup", "s_prefetch_inst_pc_rel",
})  # fmt: skip
# replacements that do not change results: no-ops, and waits (s_waitcnt_depctr and s_wait_alu for
# vector instructions, the others for memory accesses)
HARMLESS = HINTS | {
    "s_nop", "s_waitcnt", "s_wait_idle", "s_waitcnt_depctr", "s_wait_alu", "s_wait_loadcnt",
    "s_wait_storecnt", "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt", "s_wait_dscnt",
    "s_wait_kmcnt", "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt",
}  # fmt: skip
DEALLOCATION = 3  # the message by which a wave gives its registers back before it ends
MEMORY = ("SMEM", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF")
COMMUTATIVE = re.compile(
    r"(v_(pk_)?(dual_)?(add|mul|mul_hi|mul_lo|min|max|minimum|maximum|and|or|xor|xnor|fma|mad|fmac|"
    r"add3|add_co|add_nc|addc_co|add_co_ci|add_lshl|max3|min3|med3|or3|and_or|xad|mad_mix|fma_mix|"
    r"fmaak|madak|div_fmas|maxmin|minmax|sad)"
    r"_[a-z0-9_]+|s_(add|addc|mul|mul_hi|min|max|and|or|xor|nand|nor|xnor)_[a-z0-9_]+"
    r"|[sv]_cmpx?_(eq|lg|ne|neq|nlg|o|u)_[a-z0-9]+|v_dot\d_[a-z0-9_]+)"
)
NOT_COMMUTATIVE = re.compile(r".*(_rev|andn2|orn2|and_not|or_not).*")
BRANCHES = {
    "s_cbranch_scc0": "s_cbranch_scc1", "s_cbranch_vccz": "s_cbranch_vccnz",
    "s_cbranch_execz": "s_cbranch_execnz",
}  # fmt: skip
BRANCHES |= {v: k for k, v in BRANCHES.items()}
NOP = 0xBF800000  # s_nop 0


@dataclass(frozen=True)
class Site:
    """An instruction that ran: `at` is its place in the .vmfb, `count` how often it ran."""

    program: str
    at: int
    words: tuple[int, ...]
    function: str
    address: int
    text: str
    count: int
    facts: Facts = UNKNOWN
    known: State = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Mutant:
    """A site with other bytes."""

    site: Site
    kind: str
    code: bytes
    what: str = ""

    def __str__(self) -> str:
        return (
            f"{self.site.program} {self.site.function}+{self.site.address:x} "
            f"'{self.site.text}': {self.kind} {self.what}"
        )


@dataclass
class Registers:
    """The registers that a program's instructions name: what a damaged operand names instead."""

    vector: set[int] = field(default_factory=set)
    scalar: set[int] = field(default_factory=set)

    def add(self, text: str) -> None:
        for letter, single, low, high in re.findall(r"\b([vas])(?:(\d+)|\[(\d+):(\d+)\])", text):
            numbers = range(int(single or low), int(single or high) + 1)
            (self.scalar if letter == "s" else self.vector).update(numbers)


# ------------------------------------------------------------------------ operands and constants


def _is_hint(code: Code) -> bool:
    """Return whether an instruction tells what is faster: registers that are given back, too."""
    gives_back = code.name == "s_sendmsg" and code.get(0, 16) == DEALLOCATION
    return code.name in HINTS or (gives_back and ARCHS[code.arch][0] != "gfx9")


def _operands(code: Code) -> Iterator[tuple[Part, str, str, int, int]]:
    """(part, letter, kind of register, bit, width) of every operand that is a register.

    Kinds: v a VGPR's number, w one plus 256, s an SGPR's number, b of a pair, q of a quad, y a
    VGPR of the second half of a pair.
    """
    for part in code.parts:
        name = part.layout.name
        for letter in dict.fromkeys(part.opcode.letters):
            if letter not in part.layout.fields and letter != "d":
                continue
            kind, bit, width = code.field(part, letter)
            value = code.get(bit, width)
            if kind == "k" or not _is_read(code, part, letter, value):
                continue
            if kind == "r":
                if letter == "a" and code.escape(part):
                    yield part, letter, "v", 32 * part.layout.words, 8
                elif value >= 256:
                    yield part, letter, "w", bit, width
                elif _is_scalar(value):
                    yield part, letter, "s", bit, width
            elif kind == "s":
                if _is_scalar(value):
                    yield part, letter, "s", bit, width
            elif kind in "vbqy" and not (name == "VOP3" and kind == "v" and _mark(part, letter)):
                yield part, letter, kind, bit, width
            elif kind == "v" and _is_scalar(value & 127):  # a scalar result of VOP3
                yield part, letter, "s", bit, width


def _mark(part: Part, letter: str) -> bool:
    """Return whether a vector field holds a scalar result: a comparison's mask, a lane's value."""
    return any(o[0] == letter and o.endswith("S") for o in part.opcode.operands)


def _is_scalar(value: int) -> bool:
    return value < 108 or value in (124, 126, 127)


def _is_read(code: Code, part: Part, letter: str, value: int) -> bool:
    name, bits = part.layout.name, part.layout.modifiers

    def bit(modifier: str) -> int:
        return code.get(*bits[modifier]) if modifier in bits else 0

    if name == "MUBUF" and letter == "a":
        return bool(bit("offen") or bit("idxen"))
    if name == "MUBUF" and letter == "d":
        return not bit("lds")
    if name == "SMEM" and letter == "o":
        return bool(bit("soff")) if "soff" in bits else True
    if name in ("FLAT", "GLOBAL", "SCRATCH") and letter == "s":
        return value not in (0x7F, 0x7C)
    return True


def _sources_and_results(code: Code) -> tuple[list, list]:
    sources, results = [], []
    for operand in _operands(code):
        part, letter = operand[:2]
        name = part.opcode.name
        store = "_store" in name or (part.layout.name == "DS" and "_write" in name)
        result = (letter == "d" and not store and not name.startswith(("s_cmpk", "s_setreg"))) or (
            letter == "s" and part.layout.name == "VOP3"
        )
        (results if result else sources).append(operand)
    return sources, results


def _is_float(name: str) -> bool:
    return bool(re.search(r"f16|f32|f64|bf16", name)) and not name.startswith("v_mfma")


def _floats(part: Part) -> list[str]:
    """The sources of a floating-point instruction that are such numbers: not masks, exponents."""
    integers = "b" if re.match(r"v_(cmpx?_class|ldexp|trig_preop)", part.opcode.name) else ""
    if part.opcode.name.startswith("v_cndmask"):
        integers = "c"
    return [x for x in "abc" if x in part.opcode.letters and x not in integers]


# ------------------------------------------------------------------------------------- the kinds

Draw = Callable[[Code, Registers, random.Random], "tuple[int, str] | None"]


def _with_register(code: Code, registers: Registers, rng: random.Random, operands: list):
    if not operands:
        return None
    part, letter, kind, bit, width = rng.choice(operands)
    old = code.get(bit, width)
    pool = registers.scalar if kind in "sbq" else registers.vector
    by = {"b": 2, "q": 4, "y": 2}.get(kind, 1)
    base = 256 if kind == "w" else 0
    choices = sorted({n // by + base for n in pool} - {old})
    # another that holds the same constant, of operands that are of the lane itself
    if letter in "abc" and f"{letter}1" in part.opcode.operands and not code.escape(part):
        first = VECTOR if kind == "v" else 0
        held = {n: code.known.get(n + first, NOTHING).value for n in (old, *choices)}
        if held[old] is not None and "lane" not in part.opcode.name:
            choices = [n for n in choices if held[n] != held[old]]
    if not choices:
        return None
    new = rng.choice(choices)
    return code.replaced(bit, width, new), f"{letter}: {(old - base) * by} -> {(new - base) * by}"


def opcode(code: Code, registers: Registers, rng: random.Random):
    """The opcode of another instruction of the same format."""
    part = rng.choice(code.parts)
    table = opcodes(code.arch)[part.layout.name]
    others = sorted(n for n, o in table.items() if o.name != part.opcode.name)
    new = rng.choice(others)
    idle = _is_hint(code) or (code.name == "s_nop" and not code.get(0, 4))
    # with 0 for an operand: to the next instruction, no halt
    onward = not code.get(0, 16) and "branch" in table[new].name
    # the lowest bit of the immediate halts the wave
    onward |= table[new].name == "s_sethalt" and not code.get(0, 1)
    if idle and (table[new].name in HARMLESS or onward):
        return None
    if identities.same_opcode(part.opcode.name, table[new].name):
        return None
    return code.replaced(*part.layout.opcode, new), f"-> {table[new].name}"


def source_register(code: Code, registers: Registers, rng: random.Random):
    """A register that is read becomes another one that the program names."""
    return _with_register(code, registers, rng, _sources_and_results(code)[0])


def result_register(code: Code, registers: Registers, rng: random.Random):
    """A register that is written becomes another one that the program names."""
    return _with_register(code, registers, rng, _sources_and_results(code)[1])


def immediate(code: Code, registers: Registers, rng: random.Random):
    """A bit of a constant, of an address's offset or of a literal is flipped."""
    flips: list[tuple[int, str]] = []

    def flip(bit: int, width: int, what: str) -> None:
        for n in range(width):
            flips.append((code.bits ^ 1 << (bit + n), f"{what} bit {n}"))

    for part in code.parts:
        name, bits = part.layout.name, part.layout.modifiers
        if "k" in part.opcode.letters:
            kind, bit, width = code.field(part, "k")
            for n in range(width):
                if not _is_ignored(code, part.opcode.name, n):
                    flips.append((code.bits ^ 1 << (bit + n), f"k bit {n}"))
        if name == "DS" and "a" in part.opcode.letters:
            flip(*bits["offset0"], "offset0")
            flip(*bits["offset1"], "offset1")
        elif name in MEMORY and "offset" in bits and part.opcode.operands:
            flip(*bits["offset"], "offset")
        kept = same_result(code, part, code.known)
        if code.has_literal(part):
            first, width = _read_of_literal(code, part)
            last = 32 * (code.size - 1)
            places = [x for x in "abc" if _is_literal(code, part, x)]
            unread = kept | identities.unread_bits(part.opcode.name, places)
            for n in range(first, first + width):
                if not unread >> n & 1:
                    flips.append((code.bits ^ 1 << last + n, f"literal bit {n}"))
        for letter in dict.fromkeys(part.opcode.letters):
            kind, bit, width = part.layout.fields.get(letter, ("", 0, 0))
            if kind not in ("r", "s") or not width or (letter == "a" and code.escape(part)):
                continue
            value = code.get(bit, width)
            if not _is_read(code, part, letter, value) or (name in MEMORY and letter == "s"):
                continue
            if 128 <= value <= 192:
                read = 5 if identities.is_count(part.opcode.name, letter) else 7
                news = [128 + (value - 128 ^ 1 << n) for n in range(read)]
            elif 193 <= value <= 208:
                news = [193 + (value - 193 ^ 1 << n) for n in range(4)]
            elif 240 <= value <= 247:
                news = [240 + (value - 240 ^ 1 << n) for n in range(3)]
            else:
                continue
            for n, new in enumerate(news):
                if _is_same(code, part, value, new, kept):
                    continue
                if new <= 208 or value >= 240:
                    flips.append((code.replaced(bit, width, new), f"{letter}: constant bit {n}"))
    return rng.choice(flips) if flips else None


def _is_same(code: Code, part: Part, old: int, new: int, kept: int) -> bool:
    """Return whether two inline constants have the same effect on an instruction: denormals
    that are flushed to 0, or a difference in bits that the result does not depend on."""
    before, after = identities.inline(old), identities.inline(new)
    if before is None or after is None:
        return False
    flushed = identities.both_flushed(code.facts, part.opcode.name, before, after)
    return flushed or not (before ^ after) & ~kept


def _read_of_literal(code: Code, part: Part) -> tuple[int, int]:
    """First bit and width of what is read of a literal: 16-bit operations read one half, or both
    where op_sel and op_sel_hi of a packed one say so."""
    bits, marks = part.layout.modifiers, {o[0]: o[1:] for o in part.opcode.operands}
    places = [
        letter for letter in "abc"
        if letter in marks and letter in part.layout.fields
        and code.get(*code.field(part, letter)[1:]) == LITERAL
    ]  # fmt: skip
    packed = re.match(r"v_pk_[a-z0-9_]+_b?[fiu]?16", part.opcode.name) is not None
    if packed and part.layout.name == "VOP3P":
        selected = {code.get(bits["opsel"][0] + "abc".index(x), 1) for x in places}
        for x in places:
            at = bits["opselhi2"][0] if x == "c" else bits["opselhi"][0] + "abc".index(x)
            selected.add(code.get(at, 1))
        return (16 * min(selected), 16) if len(selected) == 1 else (0, 32)
    halves = bool(places) and all("h" in marks[x] for x in places)
    return (0, 16) if halves else (0, 32)


def _is_literal(code: Code, part: Part, letter: str) -> bool:
    field = part.layout.fields.get(letter)
    return field is not None and code.get(*field[1:]) == LITERAL


def modifier(code: Code, registers: Registers, rng: random.Random):
    """A bit of clamp, omod, abs, op_sel, the accumulator file, a DPP or an SDWA word is flipped."""
    places: list[tuple[int, str]] = []
    for part in code.parts:
        name, bits = part.opcode.name, part.layout.modifiers
        packed = part.layout.name == "VOP3P"
        wanted = ["acc", "offen"] + (["lds"] if "_load_" in name else [])
        if packed:
            wanted += ["clamp", "opsel", "opselhi", "opselhi2"]
        elif part.layout.name == "VOP3":
            compares = name.startswith("v_cmp")
            wanted += ["opsel"] if "16" in name and not compares else []
            if _is_float(name) and compares:
                wanted += ["abs"]
            elif _is_float(name) and name.startswith("v_pack"):
                wanted += ["abs"]  # the result is no number
            elif _is_float(name):
                wanted += ["clamp"] + ([] if code.facts.exact else ["omod"])
                wanted += [] if "s" in part.opcode.letters else ["abs"]
        for one in wanted:
            if one in bits:
                at, width = bits[one]
                read = range(width)
                if one in ("abs", "opsel", "opselhi", "opselhi2"):
                    of = "c" if one == "opselhi2" else "abcd"
                    read = [n for n in read if of[n] in part.opcode.letters]
                    if one == "abs":
                        read = [n for n in read if _has_sign(code, part, "abc"[n])]
                    elif not packed and name.startswith("v_pack"):
                        read = [n for n in read if of[n] != "d"]  # the result is no half
                    elif name.startswith(("v_fma_mix", "v_mad_mix")) and one != "abs":
                        read = [n for n in read if _tells_half(code, part, one, of[n])]
                places += [(at + n, f"{one} bit {n}") for n in read]
        escape = code.escape(part)
        first = 32 * part.layout.words
        if escape == 249:
            second = range(24, 27) if "b" in part.opcode.letters else ()
            whole = code.get(first + 8, 3) == 6  # the result's: all bits are used
            read = (*range(8, 11 if whole else 13), *range(16, 19), *second)
            places += [(first + n, f"sdwa bit {n}") for n in read]
        elif escape == 250:
            read = {*range(8, 17), 19, *range(24, 32)} - {*identities.unread_rows(code.facts)}
            places += [(first + n, f"dpp bit {n}") for n in sorted(read)]
        elif escape:
            places += [(first + n, f"dpp8 bit {n}") for n in range(8, 32)]
    return _flipped(code, places, rng)


def _has_sign(code: Code, part: Part, letter: str) -> bool:
    """Return whether a source is a number whose magnitude may be another one."""
    if letter not in _floats(part) or identities.is_positive(code, part, letter):
        return False
    # a value without a sign keeps none under neg: the negation comes after the magnitude
    single = part.layout.name == "VOP3" and "f32" in part.opcode.name and not code.escape(part)
    known = f"{letter}1" in part.opcode.operands and source(code.known, code, part, letter)
    return not (single and known and known.is_magnitude)


def _tells_half(code: Code, part: Part, modifier: str, letter: str) -> bool:
    """Return whether a mixed-precision fma reads a source's op_sel (which half) or op_sel_hi.

    An f32 source has no halves. A constant of floats, or 0, is in f16 the number that it is in f32.
    """
    bits, place = part.layout.modifiers, "abc".index(letter)
    high = bits["opselhi2"] if place == 2 else (bits["opselhi"][0] + place, 1)
    if modifier == "opsel":
        return bool(code.get(*high))
    _, at, width = code.field(part, letter)
    value, second = code.get(at, width), code.get(bits["opsel"][0] + place, 1)
    return value != 128 and not (240 <= value <= 247 and not second)


def _flipped(code: Code, places: Sequence[tuple[int, str]], rng: random.Random):
    """One of these bits is the other."""
    if not places:
        return None
    at, what = rng.choice(places)
    return code.bits ^ 1 << at, what


def exchange(code: Code, registers: Registers, rng: random.Random):
    """The first two sources are exchanged."""
    part = rng.choice(code.parts)
    name, letters = part.opcode.name, part.opcode.letters
    if COMMUTATIVE.fullmatch(name) and not NOT_COMMUTATIVE.fullmatch(name):
        return None
    if part.layout.name in MEMORY or not {"a", "b"} <= set(letters) or code.escape(part):
        return None
    (first_kind, *first), (second_kind, *second) = (
        code.field(part, "a"), code.field(part, "b"),
    )  # fmt: skip
    x, y = code.get(*first), code.get(*second)
    if second_kind == "v":  # a vector register's number alone
        if x < 256 or first_kind != "r":
            return None
        x, y = x - 256, y + 256
    bits = code.replaced(*first, y)
    both = Code(code.arch, [bits >> 32 * n & 0xFFFFFFFF for n in range(code.size)])
    return both.replaced(*second, x), "a <-> b"


def negation(code: Code, registers: Registers, rng: random.Random):
    """The sign of a floating-point source is flipped."""
    places: list[tuple[int, str]] = []
    for part in code.parts:
        bits = part.layout.modifiers
        if not _is_float(part.opcode.name):
            continue
        sources = _floats(part)
        mixed = part.opcode.name.startswith(("v_fma_mix", "v_mad_mix"))
        for modifier_name in ("neg", "neglo", "neghi"):
            if modifier_name in bits:
                at = bits[modifier_name][0]
                # in a mixed-precision fma this modifier takes the magnitude
                only = [
                    x for x in sources
                    if not (mixed and modifier_name == "neghi") or _has_sign(code, part, x)
                ]  # fmt: skip
                places += [(at + "abc".index(x), f"{modifier_name} {x}") for x in only]
        escape, first = code.escape(part), 32 * part.layout.words
        if escape in (249, 250):
            at = (20, 28) if escape == 249 else (20, 22)
            places += [(first + n, f"neg {x}") for n, x in zip(at, sources, strict=False)]
    return _flipped(code, places, rng)


def branch(code: Code, registers: Registers, rng: random.Random):
    """A conditional branch is taken where it was not, and the other way round."""
    other = BRANCHES.get(code.name)
    if other is None:
        return None
    table = opcodes(code.arch)["SOPP"]
    number = next(n for n, o in table.items() if o.name == other)
    return code.replaced(*code.parts[0].layout.opcode, number), f"-> {other}"


def removed(code: Code, registers: Registers, rng: random.Random):
    """s_nop in place of the instruction, of each of its words."""
    if _is_hint(code) or code.name.startswith("s_wait"):
        return None  # the one does nothing, the other has a kind of its own
    return _nops(code), "-> s_nop"


def wait_removed(code: Code, registers: Registers, rng: random.Random):
    """s_nop in place of a wait."""
    return (_nops(code), "-> s_nop") if code.name.startswith("s_wait") else None


def _nops(code: Code) -> int:
    return sum(NOP << 32 * n for n in range(code.size))


def _is_ignored(code: Code, name: str, bit: int) -> bool:
    """Return whether an instruction ignores a bit of its immediate, or only waits longer if it is
    flipped: for more memory accesses, or more cycles."""
    if name in HINTS or name in ("s_endpgm", "s_barrier"):
        return True
    _, at, _ = code.field(code.parts[0], "k")
    if name == "s_nop":
        return bit > 3 or not code.get(at + bit, 1)
    if name in ("s_denorm_mode", "s_round_mode"):
        return bit > 3
    if not name.startswith("s_wait"):
        return False
    unread = {"gfx9": (7, 12, 13), "gfx11": (3,)}.get(ARCHS[code.arch][0], ())
    if name in ("s_waitcnt_depctr", "s_wait_alu"):
        unread = (5, 6)
    elif name != "s_waitcnt":
        unread = [n for n in range(16) if not identities.counted_bits(name) >> n & 1]
    return bit in unread or bool(code.get(at + bit, 1))


KINDS: dict[str, Draw] = {
    f.__name__: f
    for f in (
        opcode, source_register, result_register, immediate, modifier, exchange, negation, branch,
        removed, wait_removed,
    )
}  # fmt: skip


# ----------------------------------------------------------------------------------------- draws


def mutate(site: Site, arch: str, registers: Registers, rng: random.Random) -> Mutant | None:
    """A mutant of an instruction; None where every kind would leave the program as it is."""
    code = Code(arch, list(site.words), site.facts, site.known)
    kinds = list(KINDS)
    while kinds:
        kind = kinds.pop(rng.randrange(len(kinds)))
        drawn = KINDS[kind](code, registers, rng)
        if drawn is not None and drawn[0] != code.bits:
            return Mutant(site, kind, code.words(drawn[0]), drawn[1])
    return None


def draw(
    sites: Sequence[Site], arch: str, count: int, seed: int, weighted: bool = False
) -> list[Mutant]:
    """`count` different mutants of the population `sites`."""
    rng = random.Random(seed)
    registers: dict[str, Registers] = {}
    for site in sites:
        registers.setdefault(site.program, Registers()).add(site.text)
    weights = [s.count for s in sites] if weighted else None
    found: dict[tuple[str, int, bytes], Mutant] = {}
    while len(found) < count:
        site = rng.choices(sites, weights)[0]
        mutant = mutate(site, arch, registers[site.program], rng)
        if mutant is not None:
            found[site.program, site.at, mutant.code] = mutant
    return list(found.values())


def sites_of(
    program: str, vmfb: bytes, arch: str, executed: Sequence[dict], module: int
) -> list[Site]:
    """Return the numbered entry of MGX_EMULATE_STATS for a program's one code object.

    Errors: AssertionError where the statistics are not of this program.
    """
    from mgx_mlir.targets.report import code_objects

    ((_, elf),) = code_objects(vmfb)
    at = vmfb.index(elf)
    kernels = functions(elf, arch)
    facts = {name: f.facts() for name, f in kernels.items()}
    bits = {name: known_bits(f) for name, f in kernels.items()}
    found = []
    for one in executed:
        if one["module"] != module:
            continue
        words = tuple(int(w, 16) for w in one["words"].split())
        place = at + offset_of(elf, one["address"])
        raw = b"".join(w.to_bytes(4, "little") for w in words)
        assert vmfb[place : place + len(raw)] == raw, one
        name, address = one["function"], one["address"]
        found.append(
            Site(
                program, place, words, name, address, one["text"], one["count"],
                facts.get(name, {}).get(address, UNKNOWN), bits.get(name, {}).get(address, {}),
            )
        )  # fmt: skip
    return found


def merged(lists: Sequence[list[Site]]) -> list[Site]:
    """The sites of several runs of one program: each once, with all it ran."""
    found: dict[int, Site] = {}
    for site in (s for one in lists for s in one):
        before = found.get(site.at)
        found[site.at] = replace(site, count=site.count + (before.count if before else 0))
    return list(found.values())

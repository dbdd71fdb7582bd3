"""Bits that the code says are the same in every run: the rules against numbers, paths, draws."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.emulator.edges import SEEDS
from benchmarks.emulator.kernels import Function, decoded, functions, offset_of
from benchmarks.emulator.known_bits import (
    ALL,
    RULES,
    VECTOR,
    Bits,
    field_of,
    known_bits,
    number,
    same_result,
)  # fmt: skip
from benchmarks.emulator.mutant_runner import Subject
from benchmarks.emulator.mutants import Site, draw
from benchmarks.emulator.words import program, scalar, scalar_move, vector, vector_move
from mgx_mlir.targets.report import code_objects

MEANINGS: dict[str, Callable[..., int]] = {
    "mov_b32": lambda a: a,
    "and_b32": lambda a, b: a & b,
    "or_b32": lambda a, b: a | b,
    "lshl_b32": lambda a, b: a << (b & 31),
    "lshlrev_b32": lambda a, b: b << (a & 31),
    "lshr_b32": lambda a, b: a >> (b & 31),
    "lshrrev_b32": lambda a, b: b >> (a & 31),
    "add_u32": lambda a, b: a + b,
    "add_i32": lambda a, b: a + b,
    "add_nc_u32": lambda a, b: a + b,
    "mul_i32": lambda a, b: a * b,
    "mul_lo_u32": lambda a, b: a * b,
    "mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "lshl_or_b32": lambda a, b, c: a << (b & 31) & ALL | c,
    "lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "and_or_b32": lambda a, b, c: a & b | c,
    "or3_b32": lambda a, b, c: a | b | c,
    "add3_u32": lambda a, b, c: a + b + c,
    "min_u32": min,
}


@pytest.mark.parametrize("name", list(RULES))
def test_a_rule_says_nothing_wrong(name: str) -> None:
    """Draw operands with some known bits, small numbers and shifts among them; results agree."""
    rng = random.Random(name)
    count, told = MEANINGS[name].__code__.co_argcount if name != "min_u32" else 2, 0
    for _ in range(2000):
        numbers, bits = [], []
        for _ in range(count):
            value = rng.getrandbits(32) >> rng.choice((0, 0, 8, 20, 27))
            value = value << rng.choice((0, 0, 3, 12)) & ALL
            seen = rng.choice((ALL, rng.getrandbits(32) | rng.getrandbits(32), 0xFFFFF000, 0xFFF))
            numbers.append(value)
            bits.append(Bits(~value & seen & ALL, value & seen))
        result, known = MEANINGS[name](*numbers) & ALL, RULES[name](*bits)
        assert not result & known.zeros
        assert result & known.ones == known.ones
        told += (known.zeros | known.ones).bit_count()
    assert told > 2000


def test_fields() -> None:
    assert field_of(number(0xABCD), 4, 8).value == 0xBC
    assert field_of(Bits(0xFFFF0000), 4, 32).zeros == 0xFFFFF000


def followed(*words: int) -> dict[int, dict[int, Bits]]:
    code = decoded("gfx1100", 0, [*words, program("s_endpgm")])
    return known_bits(Function(0, code, 0, 1 << 3 | 1 << 10, threads=128))


def test_lanes_that_are_off_keep_what_they_had() -> None:
    states = followed(
        vector("v_and_b32", 1, 159, 0),  # 31
        scalar_move("s_and_saveexec_b32", 4, 106),
        vector_move(1, 136),  # 8, which is no more than 31
        vector_move(2, 136),
        scalar("s_or_b32", 126, 126, 4),
        vector_move(3, 136),
    )
    last = states[24]
    assert states[0][VECTOR].most == 127
    assert states[4][VECTOR + 1].most == 31
    assert last[VECTOR + 1] == Bits(ALL & ~31)
    assert VECTOR + 2 not in last
    assert last[VECTOR + 3].value == 8


def test_what_was_saved_is_no_more_where_it_is_written_over() -> None:
    saved = scalar_move("s_and_saveexec_b32", 4, 106)
    over, back = scalar_move("s_mov_b32", 4, 193), scalar("s_or_b32", 126, 126, 4)
    assert followed(saved, back)
    assert not followed(saved, over, back)
    assert not followed(scalar_move("s_mov_b32", 126, 193))


def test_lanes_that_are_off_in_parts() -> None:
    """One condition within another: what comes back is not all until the outer one is left."""
    states = followed(
        scalar_move("s_and_saveexec_b32", 4, 106),
        scalar_move("s_and_saveexec_b32", 5, 106),
        scalar("s_or_b32", 126, 126, 5),
        vector_move(1, 136),
        scalar("s_or_b32", 126, 126, 4),
        vector_move(2, 136),
    )
    assert VECTOR + 1 not in states[24]
    assert states[24][VECTOR + 2].value == 8


def test_numbers_that_are_not_negative() -> None:
    """Squares, exponentials, sums of these; not a difference, nor a number that was loaded."""
    square, power = vector("v_mul_f32", 1, 256, 0), 0x7E000000 | 2 << 17 | 0x25 << 9 | 257
    states = followed(
        square,
        power,
        vector("v_add_f32", 3, 257, 2),
        vector("v_sub_f32", 4, 257, 2),
        vector("v_mul_f32", 5, 258, 4),
        vector("v_fmac_f32", 3, 257, 2),
    )
    assert decoded("gfx1100", 0, [power])[0][1].name == "v_exp_f32"
    told = {r - VECTOR for r, bits in states[24].items() if bits.is_magnitude}
    assert told == {0, 1, 2, 3}
    assert not any(bits.zeros >> 31 for r, bits in states[24].items() if r > VECTOR)
    # an operand that is its own magnitude: v_ldexp_f32 v63, v63, v79
    scaled = Site("p", 1, (0xD71C003F, 0x00029F3F), "f", 0, "v_ldexp_f32 v63, v63, v79", 1)
    known = replace(scaled, known={VECTOR + 63: Bits(magnitude=True)})
    untold, told_of = (
        {(m.kind, m.what) for m in draw([s], "gfx1100", 60, 4)} for s in (scaled, known)
    )
    assert ("modifier", "abs bit 0") in untold
    assert ("modifier", "abs bit 0") not in told_of


def test_loops_leave_what_every_turn_says() -> None:
    states = followed(
        scalar_move("s_mov_b32", 0, 128),
        scalar("s_lshl_b32", 2, 0, 132),
        scalar("s_add_i32", 0, 0, 144),
        program("s_cbranch_scc1", -3),
    )
    assert states[16][0] == Bits(15)
    assert states[16][2] == Bits(255)
    assert (
        0
        not in followed(
            scalar_move("s_mov_b32", 0, 128),
            scalar("s_add_i32", 0, 0, 129),
            program("s_cbranch_scc1", -2),
        )[12]
    )


def test_high_halves_of_addresses() -> None:
    load, base = 0xF4040000 | 8 << 6, 0xF8000000  # s_load_b64 s[8:9], s[0:1], 0x0
    code = decoded("gfx1100", 0, [load, base, load, base + 16, program("s_endpgm")])
    assert code[0][1].name == "s_load_b64"
    states = known_bits(Function(0, code, 0, 1 << 3, high_halves=frozenset({4})))
    assert states[8][9] == Bits(0xFFFF0000)
    assert 8 not in states[8]
    assert 9 not in states[16]


def test_what_registers_hold_is_not_drawn() -> None:
    masked = Site("p", 1, (0x360E049C,), "f", 0, "v_and_b32 v7, 28, v2", 1)
    copied = Site("p", 2, (0xBE8B000F,), "f", 4, "s_mov_b32 s11, s15", 1)
    others = Site("p", 3, (0xBE8B0003,), "f", 8, "s_mov_b32 s11, s3", 1)
    known = [
        replace(masked, known={VECTOR + 2: Bits(3)}),
        replace(copied, known={15: number(5), 3: number(5)}),
        others,
    ]
    told, untold = (
        {(m.site.at, m.kind, m.what) for m in draw(sites, "gfx1100", 90, 4)}
        for sites in (known, [masked, copied, others])
    )
    bits = {(1, "immediate", f"a: constant bit {n}") for n in range(2)}
    assert untold >= bits
    assert not told & bits
    assert (1, "immediate", "a: constant bit 2") in told
    same = (2, "source_register", "a: 15 -> 3")
    assert same in untold
    assert same not in told
    # a write to another register is reported
    assert (2, "result_register", "d: 11 -> 15") in told


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.parametrize("subject", ["attention-f32", "layernorm-f32"])
def test_what_is_not_drawn_gives_the_same_bits(subject: str, library: Path) -> None:
    """Every bit of a mask's literal of which the code says that it does not matter, at once."""
    arch = "gfx1100"
    program = Subject(subject, arch, list(SEEDS))
    control, vmfb = program.digest(), program.plain[0]
    ((_, elf),) = code_objects(vmfb)
    tried = 0
    for kernel in functions(elf, arch).values():
        known = known_bits(kernel)
        for at, code in kernel.code:
            masks = [same_result(code, p, known.get(at, {})) for p in code.parts]
            if not any(masks) or len(code.parts) > 1 or not code.has_literal(code.parts[0]):
                continue
            other = code.words(code.bits ^ masks[0] << 32 * (code.size - 1))
            program.load(vmfb.index(elf) + offset_of(elf, at), other)
            assert program.digest() == control, f"{code.name} at {at:#x}"
            tried += 1
    assert tried > 1

"""Results that nothing reads are reported; results that may be read are not."""

from __future__ import annotations

from benchmarks.emulator.kernels import Function, decoded
from benchmarks.emulator.unread import unread
from benchmarks.emulator.words import program, scalar, scalar_move, stored, vector, vector_move

VCC, EXEC, ZERO, ONE = 106, 126, 128, 129


def reported(*words: int) -> list[str]:
    """The addresses of what nothing reads."""
    code = decoded("gfx1100", 0, [*words, program("s_endpgm")])
    found = unread(Function(0, code, 0, 1 << 3 | 1 << 10, threads=32))
    return [text.split()[-1] for text in found]


def test_a_result_that_nothing_reads() -> None:
    assert reported(vector_move(1, ZERO), *stored(0, 1)) == []
    assert reported(vector_move(1, ZERO), *stored(0, 0)) == ["0x0"]
    # written over before it is read
    assert reported(vector_move(1, ZERO), vector_move(1, ONE), *stored(0, 1)) == ["0x0"]
    # an accumulator is read
    fmac = vector("v_fmac_f32", 1, ONE, 0)
    assert reported(vector_move(1, ZERO), fmac, *stored(0, 1)) == []


def test_paths() -> None:
    """A result that one path reads, or the next turn of a loop."""
    skip = program("s_cbranch_scc0", 2)
    assert reported(vector_move(1, ZERO), skip, *stored(0, 1)) == []
    turn = (vector_move(1, ZERO), *stored(0, 1), vector_move(1, ONE))
    assert reported(*turn, program("s_cbranch_scc0", -4)) == []  # to the store
    assert reported(*turn, program("s_cbranch_scc0", -5)) == ["0xc"]  # to the start


def test_lanes_that_are_off_are_not_written_over() -> None:
    saved, back = scalar_move("s_and_saveexec_b32", 4, VCC), scalar("s_or_b32", EXEC, EXEC, 4)
    masked = (vector_move(1, ZERO), saved, vector_move(1, ONE), back, *stored(0, 1))
    assert reported(*masked) == []


def test_conditions_and_masks() -> None:
    """The condition of a scalar instruction is a result, too; LLVM leaves copies of exec."""
    less = scalar("s_and_b32", 5, 6, 7)
    assert reported(less, program("s_cbranch_scc0", 0)) == []
    assert reported(less) == ["0x0"]
    assert reported(scalar_move("s_mov_b32", 5, EXEC)) == []
    assert reported(scalar_move("s_mov_b32", 5, ZERO)) == ["0x0"]
    compared = 0x7C000000 | 0x4A << 17 | ONE  # v_cmp_eq_u32 vcc_lo, 1, v0
    assert decoded("gfx1100", 0, [compared])[0][1].name == "v_cmp_eq_u32"
    assert reported(compared) == ["0x0"]
    assert reported(compared, program("s_cbranch_vccz", 0)) == []

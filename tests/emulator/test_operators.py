"""Every operator that is compiled, on emulated GPUs, against its numpy reference: three seeds.

One case of each runs in CI. All of them: `pytest -m slow tests/emulator/test_operators.py -rP`,
`-k gfx942` for one architecture; it prints the worst error in each type.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from tests.emulator import operators
from tests.emulator.operators import ARCHS, SEEDS, WANTED, Compiled, Programs
from tests.lowering import harness

PARTS = 8
# operators with regions, which examples cannot state: `test_control`
CONTROL = {"if", "loop"}
# operators without operands, or whose operands give dims alone
WITHOUT_VALUES = {"allocate", "outline", "require", "undefined"}


@functools.lru_cache(maxsize=4)
def programs_of(part: int, arch: str) -> list[Programs]:
    """A part's programs: one compile for all seeds."""
    return [operators.compiled(cases, arch) for cases in operators.part_of(part, PARTS, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("arch", [*ARCHS, "gfx1030"])
def test_examples(arch: str, part: int, seed: int, library: Path) -> None:
    drawn = operators.part_of(part, PARTS, seed)
    for programs, cases in zip(programs_of(part, arch), drawn, strict=True):
        errors = operators.run(programs, cases)
        print(f"{arch}, part {part}, seed {seed}: {errors}")
        errors.check()


@pytest.mark.parametrize("arch", ARCHS)
def test_one_of_each(arch: str, library: Path) -> None:
    """A case of every operator, in another type for each family of architectures."""
    for cases in operators.sample(0, turn=int(arch.startswith("gfx1"))):
        operators.run(operators.compiled(cases, arch), cases).check()


# ---- regions -------------------------------------------------------------------------------------

# a branch; and tanh(v w + x) over and over until its mean is below a limit, each of them kept
CONTROLLED = """
func.func @main(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<4x6xT>, %w: tensor<6x6xT>,
                %limit: tensor<1x1xT>) -> (tensor<4x6xT>, tensor<4x6xT>, tensor<?x4x6xT>) {
  %r = "migraphx.if"(%c) ({
    %0 = "migraphx.mul"(%x, %x) : (tensor<4x6xT>, tensor<4x6xT>) -> tensor<4x6xT>
    "migraphx.yield"(%0) : (tensor<4x6xT>) -> ()
  }, {
    %0 = "migraphx.dot"(%x, %w) : (tensor<4x6xT>, tensor<6x6xT>) -> tensor<4x6xT>
    "migraphx.yield"(%0) : (tensor<4x6xT>) -> ()
  }) : (tensor<i1>) -> tensor<4x6xT>
  %true = "migraphx.literal"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %l:2 = "migraphx.loop"(%n, %true, %r) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<4x6xT>):
    %0 = "migraphx.dot"(%v, %w) : (tensor<4x6xT>, tensor<6x6xT>) -> tensor<4x6xT>
    %1 = "migraphx.add"(%0, %x) : (tensor<4x6xT>, tensor<4x6xT>) -> tensor<4x6xT>
    %2 = "migraphx.tanh"(%1) : (tensor<4x6xT>) -> tensor<4x6xT>
    %3 = "migraphx.reduce_mean"(%2) {axes = array<i64: 0, 1>} : (tensor<4x6xT>) -> tensor<1x1xT>
    %4 = "migraphx.greater"(%3, %limit) : (tensor<1x1xT>, tensor<1x1xT>) -> tensor<1x1xT>
    %5 = "migraphx.convert"(%4) {target_type = i1} : (tensor<1x1xT>) -> tensor<1x1xi1>
    %6 = "migraphx.squeeze"(%5) {axes = array<i64: 0, 1>} : (tensor<1x1xi1>) -> tensor<i1>
    "migraphx.yield"(%6, %2, %1) : (tensor<i1>, tensor<4x6xT>, tensor<4x6xT>) -> ()
  }) {max_iterations = 10 : i64, scan_output_directions = array<i64: 0>, padded = false}
    : (tensor<i64>, tensor<i1>, tensor<4x6xT>) -> (tensor<4x6xT>, tensor<?x4x6xT>)
  return %r, %l#0, %l#1 : tensor<4x6xT>, tensor<4x6xT>, tensor<?x4x6xT>
}"""


def controlled(dtype: dtypes.DType) -> ProgramIR:
    ctx = new_context()
    text = CONTROLLED.replace("xT>", f"x{dtype.mlir}>")
    return ProgramIR(ctx, parse_module(text, ctx), WeightStore(), "control")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "dtype",
    [d if d is dtypes.FLOAT else pytest.param(d, marks=pytest.mark.slow)
     for d in WANTED if d.is_float],
    ids=str,
)  # fmt: skip
def test_control(dtype: dtypes.DType, arch: str, library: Path) -> None:
    """Both branches, and loops that end by their count and by their condition."""
    program = controlled(dtype)
    assert {name for name in CONTROL if f"migraphx.{name}" in str(program.module)} == CONTROL
    compiled = Compiled(controlled(dtype), arch)
    lengths = set()
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((4, 6)).astype(dtype.np)
        w = (rng.standard_normal((6, 6)) / 4).astype(dtype.np)
        for chosen, limit in ((True, -1.0), (False, 1.0)):
            inputs = [np.array(chosen), np.array(4), x, w, np.full((1, 1), limit, dtype.np)]
            want = Interpreter(program.module, program.store).run(
                {f"x{i}": a for i, a in enumerate(inputs)}
            )
            got = compiled.module.run(inputs)
            assert [a.shape for a in got] == [a.shape for a in want]
            assert max(map(operators.error, got, want)) <= operators.LIMITS[dtype.short]
            lengths.add(len(got[2]))
    assert lengths == {1, 4}


# ---- what is covered -----------------------------------------------------------------------------


def test_every_operator_has_cases() -> None:
    """In every one of the wanted types that it takes."""
    every = {cls.mnemonic for cls in operators.compiled_operators()}
    found = [operators.part_of(part, PARTS, 0) for part in range(PARTS)]
    cases = [c for part in found for program in part for c in program]
    assert {c.cls.mnemonic for c in cases} | CONTROL == every
    quick = {c.cls.mnemonic for program in operators.sample(0, 0) for c in program}
    assert quick | CONTROL == every
    have: dict[str, set[dtypes.DType]] = {}
    for case in cases:
        have.setdefault(case.cls.mnemonic, set()).update(operators.dtypes_of(case))
    missing = []
    for cls in operators.operators():
        for case in filter(operators.is_float, harness.examples_of(cls)):
            for dtype in set(WANTED) - have[cls.mnemonic]:
                if operators.is_taken(operators.in_dtype(case, dtype, first_only=False)):
                    missing.append(f"{case} in {dtype.mlir}")
    assert not missing, missing


def test_seeds_draw_other_values() -> None:
    """Other seeds keep the types."""
    same = set()
    for cls in operators.operators():
        drawn = [operators.cases_of(cls, seed) for seed in SEEDS]
        for cases in zip(*drawn, strict=True):
            assert len({str(c.types()) + str(c.attributes) for c in cases}) == 1, cases[0]
        bits = {b"".join(a.tobytes() for c in cases for a in c.arrays()) for cases in drawn}
        if len(bits) < len(SEEDS):
            same.add(cls.mnemonic)
    assert same == WITHOUT_VALUES

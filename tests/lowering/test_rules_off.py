"""CPU rules one by one: a program whose rule is off computes the same numbers by other kernels.

The programs are those of lit/kernel_rules, whose first function is of each rule's own form.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.core import literals
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import families, select
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR, argument_types, result_types
from mgx_mlir.rewrite.passes import run_pipeline
from tests.lowering import harness

LIT = Path(__file__).resolve().parents[2] / "lit" / "kernel_rules"
# rules that no case of kernel_families counts
RULES = (
    "byte_op", "concat", "few_bits_matmul", "gather", "gather_kernel", "linear_resize", "rotary",
    "tree_sums",
)  # fmt: skip
# IREE bufferizes no matrix that is widened in a region: a compile takes it without regions then
WITHOUT_REGIONS = ("few_bits_matmul",)
BELOW = 4  # limit of integers, so that indices, lengths and nodes are valid
EXTENT = 5  # size of dynamic dims


def program_of(rule: str) -> ProgramIR:
    """The first function of a rule's lit file, after the passes of its RUN line."""
    text = (LIT / f"{rule}.mlir").read_text()
    steps = [s.replace("-", "_") for s in re.findall(r"--mgx-([a-z0-9-]+)", text.splitlines()[1])]
    ctx, store = new_context(), literals.WeightStore()
    with ctx, ir.Location.unknown(), store.active():
        module = parse_module(text.split("// -----")[0], ctx)
        functions = list(module.body.operations)
        for extra in functions[1:]:
            extra.operation.erase()
        functions[0].operation.attributes["sym_name"] = ir.StringAttr.get("main")
    run_pipeline(module, [s for s in steps if s != "lower_to_linalg"], store=store)
    return ProgramIR(ctx, module, store, rule)


def drawn(types: list[TensorType]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    found = []
    for t in types:
        dims = [EXTENT if d < 0 else d for d in t.dims]
        numbers = rng.standard_normal(dims) if t.dtype.is_float else rng.integers(0, BELOW, dims)
        found.append(np.asarray(numbers).astype(t.dtype.np))
    return found


def taken(lowered: Lowered) -> set[str]:
    return {choice.rule for choice in lowered.choices}


@pytest.mark.parametrize("rule", RULES)
def test_a_program_without_the_rule_gives_the_same_numbers(rule: str) -> None:
    harness.load_dialect()
    families.load()
    program = program_of(rule)
    inputs = drawn(argument_types(program.main()))
    names = {f"x{i}": a for i, a in enumerate(inputs)}
    want = Interpreter(program.module, program.store).run(names)
    for off in (frozenset[str](), frozenset([rule])):
        with select.without(off):
            lowered = harness.lower(program, regions=not off or rule not in WITHOUT_REGIONS)
        assert (rule in taken(lowered)) == (not off), lowered.choices
        got = harness.execute(lowered, inputs)
        for g, w, t in zip(got, want, result_types(program.main()), strict=True):
            assert not harness.difference(g, w.astype(t.dtype.np)), f"{rule}, off: {sorted(off)}"

"""Every operator of the dialect prints: the example of its documentation, as a program."""

from __future__ import annotations

import inspect
import re

import pytest

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core import operand_segments
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op, attributes_of
from mgx_mlir.printers.text import program_text
from mgx_mlir.programs.migraphx_names import TUPLES, attributes_out
from mgx_mlir.programs.program_ir import ProgramIR

BLOCK = re.compile(r"```mlir\n(.*?)```|`(%[^`]*\"migraphx\.[^`]*)`|`(\"migraphx\.[^`]*)`", re.S)
# operands, then (past attributes and regions) their types
USES = re.compile(r'"migraphx\.\w+"\(([^)]*)\)')
TYPES = re.compile(r":\s*\(((?:[^()<>]|<[^<>]*>)*)\)\s*->")
# operators with a name of their own in the text
NOT_SHOWN = {"literal": "@literal", "yield": "@return", "unknown": "unknown:"}


def example(cls: type[Op]) -> str:
    """The MLIR code in an operator's documentation."""
    text = inspect.cleandoc(cls.__doc__ or "")
    found = [next(filter(None, g)) for g in BLOCK.findall(text)]
    shown = [f for f in found if f'"migraphx.{cls.mnemonic}"' in f]
    assert shown, "the documentation has no example"
    return inspect.cleandoc(shown[0])


def whole(snippet: str) -> str:
    """A module around a snippet: what it reads are the arguments of its function."""
    made: set[str] = set()
    for row in re.findall(r"((?:%\w+(?::\d+)?,?\s*)+)=", snippet):
        made |= set(re.findall(r"%\w+", row))
    for row in re.findall(r"\^bb0\(([^)]*)\)", snippet):
        made |= set(re.findall(r"(%\w+):", row))
    types: dict[str, str] = {}
    uses, kinds = USES.findall(snippet), TYPES.findall(snippet)
    # a region's operations stand between the operands of its operation and their types
    stack: list[list[str]] = []
    for token in re.finditer(f"{USES.pattern}|{TYPES.pattern}", snippet):
        if token.group(0).startswith('"'):
            stack.append(re.findall(r"%\w+", token.group(1)))
            continue
        listed = re.findall(r"tensor<[^<>]*>", token.group(2))
        types |= dict(zip(stack.pop(), listed, strict=True))
    assert len(uses) == len(kinds)
    arguments = {name: kind for name, kind in types.items() if name not in made}
    listed = ", ".join(f"{n}: {t}" for n, t in arguments.items())
    return f"func.func @main({listed}) {{\n{snippet}\n  return\n}}"


def line_of(text: str, name: str) -> str:
    found = [x for x in text.splitlines() if re.search(rf"= {re.escape(name)}[\[(, ]", x)]
    assert found, text
    return found[0]


@pytest.mark.parametrize("name", sorted(OPS))
def test_the_documented_example_prints(name: str) -> None:
    cls, ctx = OPS[name], new_context()
    snippet = example(cls if name != "yield" else OPS["if"])
    if name == "undefined":  # shown where something reads it
        snippet += '\n%read = "migraphx.identity"(%0) : (tensor<0xf32>) -> tensor<0xf32>'
    text = whole(snippet)
    for callee in re.findall(r"@(dim_\d)", snippet):  # select_module's, for 1x3 and 2x3
        kind = f"tensor<{callee[-1]}x3xf32>"
        text += f"\nfunc.func private @{callee}(%x: {kind}) -> {kind} {{ return %x : {kind} }}"
    program = ProgramIR(ctx, operand_segments.parse_module(text, ctx))
    with ctx:
        assert program.module.operation.verify()
    for version in ("seed", "2.16"):
        text = program_text(program, version=version)
        if name in NOT_SHOWN:
            assert f" = {NOT_SHOWN[name]}" in text
            continue
        line = line_of(text, name)
        shown = re.search(rf"= {name}(?:\[(.*?)\])?(?:\(|,| ->)", line)
        assert shown is not None
        op = operation(program, name)
        keys = attributes_out(cls, attributes_of(op))
        for key in () if name == "load" else keys:  # load shows where it ends, not its shape
            assert f"{key}=" in (shown[1] or ""), line
        several = len(op.results) > 1 and name != "lstm"
        assert ("-> [" in line) == (name in TUPLES or several), line


def operation(program: ProgramIR, name: str) -> ir.Operation:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == f"migraphx.{name}":
            found.append(op)
        return ir.WalkResult.ADVANCE

    program.module.operation.walk(visit)
    return found[0]

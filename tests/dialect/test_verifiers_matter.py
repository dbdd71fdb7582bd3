"""Each check of the dialect's verifier is needed: without it, a case in lit/dialect fails.

The cases are those of invalid_*.mlir. A check is a call of `check` in an op's `infer` or in what
that calls; switched off, it lets the op pass (or another check speak), so that the diagnostic which
the case expects does not come.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import mgx_mlir.dialects
from mgx_mlir.core import op as core_op
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError, ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import OPS
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.tools.opt.diagnostics import collecting, compare, of_error, read_expectations
from tests.completeness import NOTHING_STATED

mgx_mlir.dialects.load()
ROOT = Path(__file__).resolve().parent.parent.parent
DIALECT = ROOT / "dialects" / "migraphx"
CONTEXT = new_context()
CHUNKS = [
    (file.stem, chunk)
    for file in sorted((ROOT / "lit" / "dialect").glob("invalid_*.mlir"))
    for chunk in file.read_text().split("// -----")
]
# checks of what only a layout can violate: no verifier asks for strides
NOT_OF_THE_VERIFIER = ("strides", "reference")

Site = tuple[str, int]


def problems(chunk: str) -> list[str]:
    """Return the differences of an input's diagnostics from the expected ones."""
    with CONTEXT, WeightStore().active(), collecting(CONTEXT) as seen:
        try:
            parse_module(chunk, CONTEXT)
        except ir.MLIRError:
            pass
        except MgxError as e:
            seen.extend(of_error(e))
    said = [d for d in seen if not d.message.startswith("see current operation:")]
    return compare(read_expectations(chunk.split("\n")), said, strict=True)


@contextmanager
def checking(off: frozenset[Site] = frozenset()) -> Iterator[set[Site]]:
    """Collect which calls of `check` refuse inside the block; those in `off` let everything by."""
    refused: set[Site] = set()
    original = core_op.check

    def check(condition: Any, message: str | Callable[[], str]) -> None:
        if condition:
            return
        caller = sys._getframe(1)
        site = (Path(caller.f_code.co_filename).stem, caller.f_lineno)
        if site in off:
            return
        refused.add(site)
        raise ShapeError(message() if callable(message) else message)

    held = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("mgx_mlir.") and vars(module).get("check") is original
    ]
    for module in held:
        module.check = check  # type: ignore[attr-defined]
    try:
        yield refused
    finally:
        for module in held:
            module.check = original  # type: ignore[attr-defined]


@functools.cache
def refusals() -> dict[Site, list[str]]:
    """The cases that each call of `check` refuses."""
    found: dict[Site, list[str]] = {}
    for _, chunk in CHUNKS:
        with checking() as refused:
            problems(chunk)
        for site in refused:
            found.setdefault(site, []).append(chunk)
    return found


def sites() -> list[Site]:
    """Every call of `check` in the dialect that a verifier may come to."""
    found: list[Site] = []

    def visit(node: ast.AST, stem: str) -> None:
        if isinstance(node, ast.FunctionDef) and node.name in NOT_OF_THE_VERIFIER:
            return
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "check":
            found.append((stem, node.lineno))
        for child in ast.iter_child_nodes(node):
            visit(child, stem)

    for file in sorted(DIALECT.glob("*.py")):
        visit(ast.parse(file.read_text()), file.stem)
    return found


def test_the_invalid_cases_are_refused_as_they_say() -> None:
    assert len(CHUNKS) > 300
    for stem, chunk in CHUNKS:
        assert not problems(chunk), f"in {stem}:\n{chunk}"


def test_the_invalid_cases_are_named_after_what_is_wrong() -> None:
    """`@slice_axes_are_not_distinct`, and not `@slice_2`, which says nothing."""
    numbered, seen = [], set()
    for stem, chunk in CHUNKS:
        for name in re.findall(r"func\.func (?:private )?@(\w+)", chunk):
            op, _, number = name.rpartition("_")
            if op in OPS and number.isdecimal():
                numbered.append(f"{stem}: @{name}")
            seen.add((stem, name))
    assert len(seen) > 300
    assert not numbered, f"write what is wrong into the names of {', '.join(numbered)}"


@pytest.mark.parametrize("name", OPS)
def test_each_op_is_checked(name: str) -> None:
    """Without an op's `infer` a case fails that names it."""
    if name in NOTHING_STATED:
        pytest.skip(NOTHING_STATED[name])
    own = [chunk for _, chunk in CHUNKS if f"'migraphx.{name}' op " in chunk]
    assert own, f"no case in lit/dialect/invalid_*.mlir for migraphx.{name}"
    with patch.object(OPS[name], "infer", staticmethod(lambda o: None)):
        assert any(problems(chunk) for chunk in own), f"the cases of {name} need no infer"


def test_each_check_is_needed() -> None:
    every = sites()
    assert len(every) > 150
    unseen = [f"{stem}.py:{line}" for stem, line in every if (stem, line) not in refusals()]
    assert not unseen, f"no case in lit/dialect/invalid_*.mlir comes to {', '.join(unseen)}"
    needless = []
    for site in every:
        with checking(frozenset((site,))):
            if not any(problems(chunk) for chunk in refusals()[site]):
                needless.append(f"{site[0]}.py:{site[1]}")
    assert not needless, f"the cases pass without the checks at {', '.join(needless)}"


def test_the_checks_of_the_base_are_needed() -> None:
    """Results are compared with what `infer` finds, in number and type."""
    base = [site for site in refusals() if site[0] == "op"]
    assert len(base) >= 2
    for site in base:
        with checking(frozenset((site,))):
            assert any(problems(chunk) for chunk in refusals()[site])

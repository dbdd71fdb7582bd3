"""Conditions on the sizes of inputs, and what files may say of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from mgx_mlir.programs.size_rules import SizeRule, as_text, size_rule_of, size_rules_of

X0, X1, N = ("size", 0, 0), ("size", 0, 1), ("size", 1, -1)
DIMS = {"x": (-1, -1), "n": ()}


def holds(condition: Any, shape: tuple[int, int] = (6, 4), n: int = 3) -> bool:
    return SizeRule(condition).holds([np.zeros(shape), np.array(n)])


@pytest.mark.parametrize("condition", [
    ("==", ("%", ("*", X0, X1), 5), 4), ("<", X1, X0), ("<=", ("max", X0, X1, 2), 6),
    ("or", ("==", X0, 1), ("!=", X1, 1)), ("and", ("<", 2, N), ("not", ("==", N, 4))),
    ("==", ("floor", ("*", 0.29, ("float", X0))), 1), ("==", ("trunc", ("/", X1, 3)), 1),
    ("==", ("+", X0, ("*", -1, X1)), ("ceil", 1.5)), ("==", ("//", ("+", 1, ("*", -1, X0)), 2), -3),
])  # fmt: skip
def test_conditions_are_those_of_python_and_pass_through_files(condition: Any) -> None:
    assert holds(condition)
    rule = SizeRule(condition)
    assert size_rules_of(as_text([rule]), dict(enumerate(DIMS.values()))) == (rule,)
    assert size_rules_of(as_text([rule], list(DIMS)), DIMS) == (rule,)


def test_a_problem_names_the_condition_and_the_sizes() -> None:
    rule = SizeRule(("==", ("%", ("+", X0, -1), X1), N))
    arrays = [np.zeros((6, 4)), np.array(3)]
    assert rule.problem(arrays, ["x", "n"]) == (
        "expected ((x.shape[0] - 1) % x.shape[1]) == n, got x.shape[0] = 6, x.shape[1] = 4, n = 3"
    )
    assert rule.reads_values
    assert not SizeRule(X0).reads_values
    assert not holds(("==", ("//", X0, ("+", X1, -4)), 1))  # a division by 0


@pytest.mark.parametrize("row", [
    "text", [], ["size"], ["size", "y", 0], ["size", "x", 2], ["size", "x", -2], ["size", "x"],
    ["pow", 2, 3], ["floor", 1, 2], ["min", 1], ["+"], None, {"a": 1}, [["+"], 1],
    ["==", ["size", "x", "a"], 1],
])  # fmt: skip
def test_what_no_rule_holds_is_an_error(row: Any) -> None:
    with pytest.raises((KeyError, ValueError, TypeError, IndexError)):
        size_rule_of(row, DIMS)


def test_nesting_has_an_end() -> None:
    row: Any = 1
    for _ in range(100):
        row = ["not", row]
    with pytest.raises(ValueError, match="nested too deep"):
        size_rule_of(json.loads(json.dumps(row)), DIMS)

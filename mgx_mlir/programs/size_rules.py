"""Conditions on input sizes under which a program was traced, checked at each call."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.records import dataclass

# a number, or an operator with its operands; ("size", input, axis) is an extent, or with axis -1
# the value of a scalar input
Form = bool | int | float | tuple[Any, ...]

SIZE = "size"
_DEEPEST = 64  # nested operators in a condition of a file
_INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "*": operator.mul, "/": lambda a, b: a / b, "//": lambda a, b: a // b,
    "%": operator.mod, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}  # fmt: skip
_NAMED: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "round": round, "float": float, "not": operator.not_,
}  # fmt: skip


@dataclass(frozen=True)
class SizeRule:
    """A condition on the sizes that a program was made for."""

    condition: Form

    @property
    def reads_values(self) -> bool:
        """Return whether the condition depends on more than shapes."""
        return any(axis < 0 for _, axis in sizes_of(self.condition))

    def holds(self, arrays: Sequence[Any]) -> bool:
        """Return whether the condition holds for inputs: arrays, tensors or numbers, in order."""

        def size(i: int, axis: int) -> int:
            return int(arrays[i]) if axis < 0 else arrays[i].shape[axis]

        try:
            return bool(_value(self.condition, size))
        except (ArithmeticError, ValueError):  # a division by 0
            return False

    def problem(self, arrays: Sequence[np.ndarray], names: Sequence[str]) -> str:
        """Return the error for inputs of these names, "" if the condition holds."""
        if self.holds(arrays):
            return ""
        found = dict.fromkeys(sizes_of(self.condition))
        got = ", ".join(
            f"{_shown(names[i], axis)} = {int(arrays[i]) if axis < 0 else arrays[i].shape[axis]}"
            for i, axis in found
        )
        return f"expected {_text(self.condition, names)}, got {got}"


def sizes_of(form: Form) -> list[tuple[int, int]]:
    """Return the (input, axis) that a condition reads, from left to right."""
    if not isinstance(form, tuple):
        return []
    if form[0] == SIZE:
        return [(form[1], form[2])]
    return [s for operand in form[1:] for s in sizes_of(operand)]


def _value(form: Form, size: Callable[[int, int], int]) -> Any:
    if not isinstance(form, tuple):
        return form
    name, *operands = form
    if name == SIZE:
        return size(*operands)
    values = [_value(operand, size) for operand in operands]
    if name in _NAMED:
        return _NAMED[name](*values)
    found = values[0]
    for value in values[1:]:
        found = _INFIX[name](found, value)
    return found


def _shown(name: str, axis: int) -> str:
    return name if axis < 0 else f"{name}.shape[{axis}]"


def _text(form: Form, names: Sequence[str], *, inner: bool = False) -> str:
    """Format a condition in Python's syntax."""
    if not isinstance(form, tuple):
        return str(form)
    if form[0] == SIZE:
        i, axis = map(int, form[1:])
        return _shown(names[i], axis)
    name, *operands = form
    if name in _NAMED:
        return f"{name}({', '.join(_text(o, names) for o in operands)})"
    parts = [_text(o, names, inner=True) for o in operands]
    text = f" {name} ".join(parts).replace(" + -", " - ")
    return f"({text})" if inner else text


def size_rule_of(row: Any, dims: Mapping[Any, Sequence[int]]) -> SizeRule:
    """Parse a condition of a file; `dims` are those of each input, in order.

    Inputs have the names in `dims`. Errors: KeyError, ValueError, TypeError or IndexError for a
    malformed rule.
    """
    numbers = {name: i for i, name in enumerate(dims)}

    def form(row: Any, depth: int = 0) -> Form:
        if isinstance(row, bool | int | float):
            return row
        name, *operands = row
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if name == SIZE:
            key, axis = operands
            if not -1 <= int(axis) < len(dims[key]):
                raise IndexError(axis)
            return (SIZE, numbers[key], int(axis))
        if not operands or (name not in _INFIX and name not in _NAMED):
            raise ValueError(name)
        if name in _NAMED and (name in ("min", "max")) == (len(operands) == 1):
            raise ValueError(name)
        return (name, *(form(o, depth + 1) for o in operands))

    return SizeRule(form(row))


def as_text(rules: Sequence[SizeRule], names: Sequence[str] | None = None) -> str:
    """Format rules for a function's attribute; with names, for a file."""

    def row(form: Form) -> Any:
        if not isinstance(form, tuple):
            return form
        if form[0] == SIZE:
            return [SIZE, form[1] if names is None else names[form[1]], form[2]]
        return [form[0], *map(row, form[1:])]

    return json.dumps([row(r.condition) for r in rules])


def size_rules_of(text: str, dims: Mapping[Any, Sequence[int]]) -> tuple[SizeRule, ...]:
    """Parse rules of `as_text`. Errors: as for size_rule_of."""
    return tuple(size_rule_of(row, dims) for row in json.loads(text))

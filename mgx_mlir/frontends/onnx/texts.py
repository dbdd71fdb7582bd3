"""Tensors of strings during import: operators that compare, move or look up strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.frontends.onnx.kinds import moves
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.onnx.structures import Texts, TextTable
from mgx_mlir.frontends.values import Held, HostValue, Value
from mgx_mlir.programs.build import Builder

_READ = frozenset(("Equal", "Shape", "Size"))  # ops with the same result on indices into one table
_MADE_UP = frozenset(("Pad", "Trilu"))  # ops that insert elements that are in no table
_SEVERAL = {"Concat": None, "ScatterElements": (0, 2), "ScatterND": (0, 2), "Where": (1, 2)}


def numbers_of(x: Held, strings: Sequence[str]) -> tuple[Value, np.ndarray]:
    """Return the indices of a tensor of strings, and the indices of `strings` among them.

    A string that no element can equal has a negative index. ModelError if x has no strings.
    """
    if not isinstance(x, Texts):
        raise ModelError("expected a tensor of strings, got a tensor of numbers")
    if isinstance(x.table, TextTable):
        return x.index, x.table.numbers(strings)
    places = {s: i for i, s in enumerate(x.table)}
    found = [places.get(s, -1 - i) for i, s in enumerate(strings)]
    return x.index, np.array(found, np.int64)


def tensor_of(x: Held) -> Value:
    """Return x, a tensor of numbers. ModelError for another value."""
    if isinstance(x, HostValue):
        raise ModelError(f"expected a tensor of numbers, got {x.describe()}")
    assert isinstance(x, ir.Value)
    return x


def as_numbers(
    b: Builder, op: OnnxOp, inputs: list[Held | None], given: TextTable
) -> tuple[list[Held | None], tuple[str, ...] | TextTable | None]:
    """Return an operator's inputs with indices for strings, and the table of its results.

    Strings stay strings if the operator reads them differently, or does not support them.
    """
    places = _places(op, len(inputs))
    strings = {i: x for i in places if isinstance(x := inputs[i], Texts)}
    if not strings:
        return inputs, None
    if len(strings) < len(places):
        raise ModelError("expected strings in all inputs, got strings and numbers")
    tables = [x.table for x in strings.values()]
    same = all(t is tables[0] or t == tables[0] for t in tables)
    found = list(inputs)
    for i, x in strings.items():
        found[i] = x.index if same else _of_table(b, x, given)
    return found, None if op.name in _READ else tables[0] if same else given


def numbered(
    b: Builder, values: Sequence[Held], given: TextTable
) -> tuple[list[Held], frozenset[int]]:
    """Return values with indices for strings into the program's table, and which were strings."""
    strings = frozenset(i for i, v in enumerate(values) if isinstance(v, Texts))
    found = [_of_table(b, v, given) if isinstance(v, Texts) else v for v in values]
    return found, strings


def _places(op: OnnxOp, count: int) -> Sequence[int]:
    """Return the inputs of an operator that may be strings which it moves or compares."""
    if op.domain == "" and op.name in _SEVERAL:
        places = _SEVERAL[op.name]
        return range(count) if places is None else [i for i in places if i < count]
    if op.domain == "" and op.name in _READ:
        return range(count)
    return range(min(count, 1)) if moves(op) and op.name not in _MADE_UP else ()


def _of_table(b: Builder, x: Texts, given: TextTable) -> Value:
    """Return strings as indices into the table of the program's inputs."""
    if isinstance(x.table, TextTable):
        return x.index
    return b.gather(b.literal(given.numbers(x.table)), x.index, axis=0)

"""Sequences, optionals, strings and maps: the importer's values that are no tensors.

A program has only tensors of numbers. A sequence is the list of its elements' values, whose number
is known at import. An optional is its content, or ABSENT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Held, HostValue, Value


@dataclass(frozen=True)
class TensorList(HostValue):
    """A sequence: the values of its elements, in order."""

    items: tuple[Value, ...]

    def describe(self) -> str:
        return describe(len(self.items))


class _Absent(HostValue):
    """An optional without content."""

    def describe(self) -> str:
        return describe(None)

    def __repr__(self) -> str:
        return "ABSENT"


@dataclass(frozen=True)
class DynamicList(HostValue):
    """A sequence whose length is known only at run time: elements of the same dims, stacked."""

    stack: Value

    def describe(self) -> str:
        return "a sequence whose length is known only at run time"


@dataclass(frozen=True)
class DynamicParts(DynamicList):
    """A sequence of parts of `whole`, each with `part` elements along `axis`; the last may be
    shorter.

    The stack exists only for equal parts: a run that reads it with a shorter last part fails.
    """

    whole: Value
    axis: int
    part: Value


@dataclass(frozen=True)
class Joined(HostValue):
    """A sequence whose elements differ in one extent, represented by their concatenation along
    `axis`.
    """

    value: Value
    axis: int

    def describe(self) -> str:
        return "a sequence of tensors whose dims differ"


class TextTable:
    """Strings known to a program with string inputs, numbered in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def numbers(self, strings: Iterable[str]) -> np.ndarray:
        """Return the indices of strings; new strings get the next ones."""
        found = [self._numbers.setdefault(s, len(self._numbers)) for s in strings]
        return np.array(found, np.int64)


@dataclass(frozen=True)
class Texts(HostValue):
    """A tensor of strings: `index`, of integers, has indices into `table`."""

    index: Value
    table: tuple[str, ...] | TextTable

    def describe(self) -> str:
        return "a tensor of strings"


@dataclass(frozen=True)
class Maps(HostValue):
    """A sequence of maps: each row of `rows` has the values of `keys`."""

    rows: Value
    keys: tuple[str | int, ...]

    def describe(self) -> str:
        return "a sequence of maps"


ABSENT = _Absent()
Form = int | None  # TENSOR, the number of elements of a sequence, or None for an absent optional
TENSOR = -1


def form_of(value: Held) -> Form:
    """Return the form of a value without its tensors; `build` is the inverse."""
    if value is ABSENT:
        return None
    if isinstance(value, DynamicList | Joined | Texts | Maps):
        raise NotSupported(value.describe())
    return len(value.items) if isinstance(value, TensorList) else TENSOR


def describe(form: Form) -> str:
    """Return a form in words: "a tensor", "a sequence of 3", "an empty optional"."""
    if form is None:
        return "an empty optional"
    return "a tensor" if form == TENSOR else f"a sequence of {form}"


def tensors(values: Iterable[Held]) -> list[Value]:
    """Return the tensors in values, in order."""
    return [t for v in values for t in tensors_of(v)]


def tensors_of(value: Held) -> tuple[Value, ...]:
    """Return the tensors of one value."""
    if isinstance(value, TensorList):
        return value.items
    if isinstance(value, DynamicList):
        return (value.stack,)
    if isinstance(value, Texts | Maps):
        return (value.index if isinstance(value, Texts) else value.rows,)
    return (value,) if isinstance(value, ir.Value) else ()


def build(forms: Sequence[Form], found: Iterable[Value]) -> list[Held]:
    """Build values of these forms from their tensors in order."""
    source = iter(found)
    return [_build(form, source) for form in forms]


def _build(form: Form, source: Iterator[Value]) -> Held:
    if form is None:
        return ABSENT
    if form == TENSOR:
        return next(source)
    return TensorList(tuple(next(source) for _ in range(form)))

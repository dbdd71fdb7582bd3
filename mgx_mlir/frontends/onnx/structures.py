"""Sequences and optionals: what the importer holds for a value that is no tensor.

A program has tensors only. A sequence is the list of its elements' values, whose number is known
when the model is read; an optional is its content, or ABSENT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TensorList:
    """A sequence: the values of its elements, in order."""

    items: tuple[Any, ...]


class _Absent:
    """An optional without content."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
Form = int | None  # TENSOR, the number of elements of a sequence, None for an absent optional
TENSOR = -1


def is_structure(value: Any) -> bool:
    return isinstance(value, TensorList) or value is ABSENT


def form_of(value: Any) -> Form:
    """What a value is besides its tensors; `build` is the inverse."""
    if value is ABSENT:
        return None
    return len(value.items) if isinstance(value, TensorList) else TENSOR


def describe(form: Form) -> str:
    """A form in words: "a tensor", "a sequence of 3", "an empty optional"."""
    if form is None:
        return "an empty optional"
    return "a tensor" if form == TENSOR else f"a sequence of {form}"


def tensors(values: Iterable[Any]) -> list[Any]:
    """The tensors in values, in order."""
    return [t for v in values for t in tensors_of(v)]


def tensors_of(value: Any) -> tuple[Any, ...]:
    if value is ABSENT:
        return ()
    return value.items if isinstance(value, TensorList) else (value,)


def build(forms: Sequence[Form], found: Iterable[Any]) -> list[Any]:
    """Values of these forms from their tensors in order."""
    source = iter(found)
    return [_build(form, source) for form in forms]


def _build(form: Form, source: Iterator[Any]) -> Any:
    if form is None:
        return ABSENT
    if form == TENSOR:
        return next(source)
    return TensorList(tuple(next(source) for _ in range(form)))

"""Assumptions of inference about dynamic extents, and their listeners.

An op's `infer` compares extents with the helpers of core/shapes.py. Where one is dynamic, the
helper returns True and reports the relation that must hold at run time. The lowering collects
these, with symbolic extents, and emits a check of each relation.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mgx_mlir.core.records import dataclass

Predicate = str  # `eq`, `ne` or `le`: equal, not equal, less or equal


class Size(int):
    """A dynamic extent with its expression; as an int it is the marker DYN."""

    form: Any

    def __new__(cls, marker: int, form: object) -> Size:
        self = super().__new__(cls, marker)
        self.form = form
        return self


@dataclass(frozen=True)
class Comparison:
    """`left` <predicate> `right`; each is a number or a Size."""

    predicate: Predicate
    left: int
    right: int

    @property
    def sides(self) -> tuple[int, int]:
        """Return both operands, left and right."""
        return self.left, self.right


# a disjunction: one of these comparisons has to hold
Relation = tuple[Comparison, ...]

_heard: ContextVar[list[Relation] | None] = ContextVar("_heard", default=None)


@contextmanager
def heard() -> Generator[list[Relation]]:
    """Collect the relations that are reported inside."""
    found: list[Relation] = []
    token = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(token)


def state(*alternatives: tuple[Predicate, int, int]) -> None:
    """Report that one of the comparisons has to hold at run time."""
    found = _heard.get()
    if found is not None:
        found.append(tuple(Comparison(*a) for a in alternatives))


def product_form(dims: Sequence[int], marker: int) -> int | None:
    """Return the product of extents as a Size; None unless all dynamic ones are Sizes."""
    sizes = [d for d in dims if isinstance(d, Size)]
    if not sizes or any(d == marker and not isinstance(d, Size) for d in dims):
        return None
    form = sizes[0].form
    for d in sizes[1:]:
        form = form * d.form
    for d in dims:
        if not isinstance(d, Size):
            form = form * d
    return Size(marker, form)


def sum_form(a: int, b: int, marker: int) -> int | None:
    """Return the sum of two extents as a Size; None if neither is one."""
    if not isinstance(a, Size):
        a, b = b, a
    if not isinstance(a, Size) or (b == marker and not isinstance(b, Size)):
        return None
    return Size(marker, a.form + (b.form if isinstance(b, Size) else b))


def remainder_form(a: int, n: int) -> Size | None:
    """Return a Size modulo n > 0; None where `a` is not a Size."""
    return Size(int(a), a.form % n) if isinstance(a, Size) else None

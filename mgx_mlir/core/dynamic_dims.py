"""Extents that only the run knows but that have a name: numbers beyond all sizes stand for them.

While passes run, a dynamic dim that the sizes of the inputs determine is no `?` in a type but such
a number, so that equal dynamic dims are equal and count as known. `TensorType.of` and attributes
give it as an int that knows its expression (symbolic/named_extents.py); anything else sees a
number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

FIRST = 10**15  # no tensor has as many elements along a dim


class _Dynamic(int):
    """The number of a dynamic dim, in messages a `?`; arithmetic gives plain numbers."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("?", spec)


DYN: Final[int] = _Dynamic(-(2**63))  # MLIR's marker of a dimension known only at run time


class NamedDim(int):
    """An extent that has a name; as a number it is that. is_extent: it is never negative."""

    is_extent: bool

    def inferred(self, cls: Any, o: Any) -> Any:
        """Return the result types of an op whose `infer` asks what the sizes decide.

        They are those of all sizes that the op allows; None where that cannot be said. cls, o: the
        op's class, and what its `infer` sees.
        """
        raise NotImplementedError


NAMED: dict[int, int] = {}  # each number in use, as an int that knows what it stands for


class UndecidedError(Exception):
    """A query about an extent has no answer that holds for all sizes."""


def named(d: int) -> int:
    """Return an extent that was read from a type or an attribute, with what it stands for."""
    if int.__ge__(d, FIRST):
        return NAMED.get(d, d)
    # an int that knows more of its extent (relations.py) stays what it is
    return DYN if type(d) is int and d == DYN else d


def all_named(dims: Iterable[int]) -> tuple[int, ...]:
    """`named` for each of `dims`."""
    found = tuple(dims)
    for d in found:
        if int.__lt__(d, 0) or int.__ge__(d, FIRST):
            return tuple(map(named, found))
    return found


def is_named(d: int) -> bool:
    """Return whether an extent is dynamic and has a name."""
    return isinstance(d, NamedDim)


def may_be_negative(d: int) -> bool:
    """Return whether it is not proved of a named extent that it is never below 0."""
    return isinstance(d, NamedDim) and not d.is_extent

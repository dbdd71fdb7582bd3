"""Named dynamic dims, represented by numbers larger than any size.

While passes run, a dynamic dim that input sizes determine is such a number in a type, not `?`. So
equal dynamic dims compare equal and count as known. `TensorType.of` and attributes
return it as an int subclass with its expression (symbolic/named_extents.py). Other readers see the
number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

FIRST = 10**15  # larger than any extent


class _Dynamic(int):
    """The marker of a dynamic dim, shown as `?`; arithmetic on it gives plain ints."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("?", spec)


DYN: Final[int] = _Dynamic(-(2**63))  # MLIR's marker of a dynamic dim


class NamedDim(int):
    """An extent with a name, which is an int too. is_extent: it is never negative."""

    is_extent: bool

    def inferred(self, cls: Any, o: Any) -> Any:
        """Return the result types of an op whose `infer` compares named dims.

        The types hold for all sizes that the op allows; None where there are none. cls, o: the op's
        class, and the view that its `infer` gets.
        """
        raise NotImplementedError


NAMED: dict[int, int] = {}  # the NamedDim of each number in use


class UndecidedError(Exception):
    """A query about an extent has no answer that holds for all sizes."""


def named(d: int) -> int:
    """Return the NamedDim of a number read from a type or an attribute; other extents unchanged."""
    if int.__ge__(d, FIRST):
        return NAMED.get(d, d)
    # a Size (relations.py) is returned unchanged
    return DYN if type(d) is int and d == DYN else d


def all_named(dims: Iterable[int]) -> tuple[int, ...]:
    """Apply `named` to each of `dims`."""
    found = tuple(dims)
    for d in found:
        if int.__lt__(d, 0) or int.__ge__(d, FIRST):
            return tuple(map(named, found))
    return found


def is_named(d: int) -> bool:
    """Return whether an extent is dynamic and has a name."""
    return isinstance(d, NamedDim)


def may_be_negative(d: int) -> bool:
    """Return whether an extent has a name and is not proved to be at least 0."""
    return isinstance(d, NamedDim) and not d.is_extent

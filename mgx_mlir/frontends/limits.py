"""Limits of one node of a model, against files that state huge extents."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.problems import NotSupported

MOST_PARTS = 1 << 14  # most operations that a node is unrolled to
MOST_NUMBERS = 1 << 26  # most elements of a table that is computed while the model is read
MOST_BYTES = 1 << 28  # most bytes of such a table
MOST_TABLES = 3 << 27  # most bytes of all tables of a model
MOST_ELEMENTS = 1 << 59  # most elements of a tensor, whose bytes fit in 64 bits
MOST_RANK = 64  # the same limit as in files of programs
MOST_FILLED = 1 << 28  # most elements of a constant with one value, which is stored once


@dataclass
class _Spent:
    tables: int = 0


_SPENT: contextvars.ContextVar[_Spent | None] = contextvars.ContextVar("mgx_spent", default=None)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Read one model within the block: the memory of its tables is counted together."""
    token = _SPENT.set(_Spent())
    try:
        yield
    finally:
        _SPENT.reset(token)


def parts(count: int, what: str) -> int:
    """Return `count`, the number of parts that a node is unrolled to. NotSupported above the
    limit.
    """
    if count > MOST_PARTS:
        raise NotSupported(f"{count} {what}, expected at most {MOST_PARTS}")
    return count


def table(extents: Iterable[int], what: str, itemsize: int = 4) -> None:
    """Raise NotSupported if a table of these extents, or all of a model together, is too large.

    `itemsize` is the number of bytes that the computation needs per element.
    """
    count = math.prod(extents)
    if count > MOST_NUMBERS or count * itemsize > MOST_BYTES:
        most = min(MOST_NUMBERS, MOST_BYTES // itemsize)
        raise NotSupported(f"{what} of {count} numbers, expected at most {most}")
    spent = _SPENT.get()
    if spent is None:
        return
    spent.tables += max(count, 0) * itemsize
    if spent.tables > MOST_TABLES:
        raise NotSupported(f"{what}: the tables of all nodes take more than {MOST_TABLES} bytes")


def rank(number: int, what: str = "a result") -> int:
    """Return `number`, a rank. ModelError if it exceeds the limit of arrays."""
    if number > MOST_RANK:
        raise ModelError(f"{what} of rank {number}, expected at most {MOST_RANK}")
    return number


def size(extents: Iterable[int], what: str = "a result") -> None:
    """Raise ModelError if known extents, except those of 0, exceed an address space."""
    dims = list(extents)
    if math.prod(d for d in dims if d > 0) > MOST_ELEMENTS:
        raise ModelError(
            f"{what} of dims {dims} is too large, expected up to {MOST_ELEMENTS} elements"
        )


def filled(extents: Iterable[int]) -> None:
    """Raise NotSupported if a constant with one value has too many elements."""
    count = math.prod(extents)
    if count > MOST_FILLED:
        raise NotSupported(f"a constant of {count} elements, expected at most {MOST_FILLED}")


def steps(start: float, end: float, step: float) -> int:
    """Return the count of numbers from `start` up to `end`. ModelError for inf and NaN."""
    if not all(math.isfinite(v) for v in (start, end, step)):
        raise ModelError(f"expected finite numbers, got {start}, {end} and {step}")
    if all(isinstance(v, int) for v in (start, end, step)):
        count = max(0, -int((start - end) // step))
    else:
        count = math.ceil(min(max((end - start) / step, 0), 2.0**63))
    table((count,), "a range", 8)
    return count

"""Limits of one node of a model: files state extents that nobody can hold."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.problems import NotSupported

MOST_PARTS = 1 << 14  # operations that a node is unrolled to
MOST_NUMBERS = 1 << 26  # elements of a table that is computed when the model is read
MOST_BYTES = 1 << 28  # bytes of such a table
MOST_TABLES = 3 << 27  # bytes of all tables of a model
MOST_ELEMENTS = 1 << 59  # elements of a tensor: their bytes are a number of 64 bits
MOST_RANK = 64  # the same limit as in files of programs
MOST_FILLED = 1 << 28  # elements of a constant that is one number, which is kept once


@dataclass
class _Spent:
    tables: int = 0


_SPENT: contextvars.ContextVar[_Spent | None] = contextvars.ContextVar("mgx_spent", default=None)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Read one model within the block: what its tables take is counted together."""
    token = _SPENT.set(_Spent())
    try:
        yield
    finally:
        _SPENT.reset(token)


def parts(count: int, what: str) -> int:
    """Return `count`, of what a node is unrolled over. NotSupported where it is too much."""
    if count > MOST_PARTS:
        raise NotSupported(f"{count} {what}, expected at most {MOST_PARTS}")
    return count


def table(extents: Iterable[int], what: str, itemsize: int = 4) -> None:
    """NotSupported where a table of these extents, or all of a model together, is too large.

    `itemsize` is the bytes that computing one number takes.
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
    """Return `number`, a rank. ModelError where no array has so many dims."""
    if number > MOST_RANK:
        raise ModelError(f"{what} of rank {number}, expected at most {MOST_RANK}")
    return number


def size(extents: Iterable[int], what: str = "a result") -> None:
    """ModelError where known extents, those of 0 aside, stand for more than an address space."""
    dims = list(extents)
    if math.prod(d for d in dims if d > 0) > MOST_ELEMENTS:
        raise ModelError(
            f"{what} of dims {dims} is too large, expected up to {MOST_ELEMENTS} elements"
        )


def filled(extents: Iterable[int]) -> None:
    """NotSupported where a constant that holds one number, once, has too many elements."""
    count = math.prod(extents)
    if count > MOST_FILLED:
        raise NotSupported(f"a constant of {count} elements, expected at most {MOST_FILLED}")


def steps(start: float, end: float, step: float) -> int:
    """Return how many numbers from `start` up to `end` there are. ModelError for inf and NaN."""
    if not all(math.isfinite(v) for v in (start, end, step)):
        raise ModelError(f"expected finite numbers, got {start}, {end} and {step}")
    if all(isinstance(v, int) for v in (start, end, step)):
        count = max(0, -int((start - end) // step))
    else:
        count = math.ceil(min(max((end - start) / step, 0), 2.0**63))
    table((count,), "a range", 8)
    return count

"""What one node of a model may become: files state extents that nobody can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mgx_mlir.frontends.problems import NotSupported

MOST_PARTS = 1 << 14  # operations that a node is unrolled to
MOST_NUMBERS = 1 << 26  # of a table that is computed when the model is read


def parts(count: int, what: str) -> int:
    """`count`, of what a node is unrolled over. NotSupported where it is too much."""
    if count > MOST_PARTS:
        raise NotSupported(f"{count} {what}, expected at most {MOST_PARTS}")
    return count


def table(extents: Iterable[int], what: str) -> None:
    """NotSupported where a table of these extents is too large."""
    count = math.prod(extents)
    if count > MOST_NUMBERS:
        raise NotSupported(f"{what} of {count} numbers, expected at most {MOST_NUMBERS}")

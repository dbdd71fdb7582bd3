"""Seeds of drawn tests: few by default, all of them in the slow tests."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, count: int) -> list[Any]:
    """Parameters 0 .. count - 1, of which those from `few` on are slow."""
    return [pytest.param(s, marks=pytest.mark.slow if s >= few else ()) for s in range(count)]


def parts(first: int, few: int, count: int) -> list[Any]:
    """Ranges of `count` seeds from `first` on, for loops over them: `few`, and slow ones."""
    return [
        pytest.param(range(first, first + few), id="few"),
        pytest.param(range(first + few, first + count), id="more", marks=pytest.mark.slow),
    ]

"""Seeds of drawn tests: few by default, all of them in the slow tests."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, count: int) -> list[Any]:
    """Parameters 0 .. count - 1, of which those from `few` on are slow."""
    return [pytest.param(s, marks=pytest.mark.slow if s >= few else ()) for s in range(count)]

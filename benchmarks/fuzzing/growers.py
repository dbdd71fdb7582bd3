"""The registry of growers: functions that add an operator, or a few, to a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.fuzzing.graph import Graph

Grower = Callable[[Graph], Any]
GROWERS: dict[str, tuple[Grower, float, int]] = {}


def grows(weight: float = 1.0, since: int = 7) -> Callable[[Grower], Grower]:
    """Register a grower. `weight` is about the number of operators it draws from."""

    def register(function: Grower) -> Grower:
        GROWERS[function.__name__.strip("_")] = (function, weight, since)
        return function

    return register

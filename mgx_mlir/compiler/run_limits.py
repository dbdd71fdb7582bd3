"""Limits of runs, and their checks; `limited_runs` enforces them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.records import dataclass


@dataclass(frozen=True)
class RunLimits:
    """Limits of each run of a program; None sets none."""

    seconds: float | None = None  # time limit of a run
    # bytes of inputs, results and intermediate values; weights are not counted
    memory: int | None = None

    @staticmethod
    def of(seconds: object, memory: object) -> RunLimits | None:
        """Return limits of arguments, None without any. Errors: UsageError."""
        for name, value, least in (("max_run_seconds", seconds, 0), ("max_run_memory", memory, 1)):
            if value is not None and not _is_limit(value, least):
                expected = "from 1 on" if least else "above 0"
                raise UsageError(f"{name} expected a number {expected}, got {_shown(value)}")
        if seconds is None and memory is None:
            return None
        numbers: Any = seconds, memory
        return RunLimits(
            None if seconds is None else float(numbers[0]),
            None if memory is None else int(numbers[1]),
        )


def _is_limit(value: object, least: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return least <= float(value) < float("inf") and value != 0
    except OverflowError:
        return False


def _shown(value: object) -> str:
    # Python refuses to write an integer of more than 4300 digits
    is_long = isinstance(value, int) and abs(value) >= 1 << 1024
    return "an integer beyond float64" if is_long else repr(value)

"""Times of whole calls of a compiled program."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram

if TYPE_CHECKING:
    from mgx_mlir.debug.dry_run import DryRun


@dataclass(frozen=True)
class Calls:
    """Milliseconds of each timed call, sorted.

    `spans` are (start, duration) in milliseconds, in order, from the start of the first.
    """

    times: tuple[float, ...]
    spans: tuple[tuple[float, float], ...] = ()

    @property
    def total(self) -> float:
        """The mean without the quickest and slowest quarter."""
        return middle_mean(self.times)

    def percentile(self, share: float) -> float:
        """Return the least time that at least a share of the calls did not exceed."""
        rank = math.ceil(share * len(self.times) - 1e-9)  # 0.95 * 20 is 19, whatever it rounds to
        return self.times[max(rank, 1) - 1]


def time_calls(
    program: CompiledProgram | DryRun,
    arrays: Sequence[np.ndarray],
    count: int,
    *,
    warm_up: int = 1,
    seconds: float = 0.0,
) -> Calls:
    """Time `count` calls, and more until `seconds` are over, after `warm_up` that are not timed."""
    for _ in range(warm_up):
        program.execute(arrays)
    spans: list[tuple[float, float]] = []
    first = time.perf_counter()
    while len(spans) < count or time.perf_counter() - first < seconds:
        start = time.perf_counter()
        program.execute(arrays)
        spans.append(((start - first) * 1e3, (time.perf_counter() - start) * 1e3))
    return Calls(tuple(sorted(d for _, d in spans)), tuple(spans))


@dataclass(frozen=True)
class Together:
    """Several callers at once: calls a second of all of them, the median call in milliseconds."""

    callers: int
    rate: float
    median: float

    def line(self, batch: int) -> str:
        """Write the figures as a line of the report."""
        return (
            f"Concurrency: {self.callers} callers, {self.rate * batch:g}/sec in all, "
            f"median call {self.median:g}ms"
        )


def time_callers(
    program: CompiledProgram, arrays: Sequence[np.ndarray], count: int, callers: int
) -> Together:
    """Run `count` calls shared by threads that call at once. Errors: RunError of any of them."""

    def one(_: int) -> float:
        start = time.perf_counter()
        program.execute(arrays)
        return (time.perf_counter() - start) * 1e3

    count = max(count, callers)
    with ThreadPoolExecutor(callers) as pool:
        start = time.perf_counter()
        times = list(pool.map(one, range(count)))
        taken = time.perf_counter() - start
    return Together(callers, count / taken, float(np.median(times)))


def time_together(program: CompiledProgram, arrays: Sequence[np.ndarray], count: int) -> float:
    """Return the milliseconds of a call: `count` by one timer, after one that is not timed."""
    program.execute(arrays)
    start = time.perf_counter()
    for _ in range(count):
        program.execute(arrays)
    return (time.perf_counter() - start) / count * 1e3


def middle_mean(times: Sequence[float]) -> float:
    """Return the mean of sorted times without the lowest and the highest quarter."""
    cut = len(times) // 4
    return float(np.mean(times[cut : len(times) - cut]))

"""Reduces a failing case: fewer nodes, outputs and sizes, as long as it fails the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.fuzzing.tasks import Task

TRIES = 60


def shrunk(task: Task, steps: int, worlds: int, fails: Callable[[Task], bool]) -> Task:
    """The smallest task found that still fails; `fails` runs one."""
    left = TRIES
    seen: dict[Task, bool] = {}

    def check(candidate: Task) -> bool:
        nonlocal left
        if candidate not in seen:
            if left <= 0:
                return False
            left -= 1
            seen[candidate] = fails(candidate)
        return seen[candidate]

    best = replace(task, kept=tuple(range(steps)))
    for i in reversed(range(steps)):  # most causes are one node
        alone = replace(best, kept=(i,))
        if steps <= 24 and check(alone):
            best = alone
            break
    best = _fewer(best, check)
    if worlds > 1:
        for w in range(worlds):
            one = replace(best, worlds=(w,))
            if check(one):
                return one
    return best


def _fewer(best: Task, check: Callable[[Task], bool]) -> Task:
    """Halving, then node by node."""
    kept = best.kept or ()
    chunk = max(1, len(kept) // 2)
    while len(kept) > 1:
        i, found = 0, False
        while i < len(kept):
            fewer = kept[:i] + kept[i + chunk :]
            if fewer and check(replace(best, kept=fewer)):
                kept, found = fewer, True
            else:
                i += chunk
        if not found and chunk == 1:
            break
        chunk = chunk if found and chunk == 1 else max(1, chunk // 2)
    return replace(best, kept=kept)

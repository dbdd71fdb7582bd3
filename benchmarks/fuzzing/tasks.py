"""Tasks of a worker: draw a seed's graph, and judge it or a part of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.fuzzing.draw import drawn
from benchmarks.fuzzing.graph import Case
from benchmarks.fuzzing.judge import judged, variants_of


@dataclass(frozen=True)
class Task:
    """The graph of a seed: its `kept` steps (None: all), `worlds` and `outputs`, and variants."""

    seed: int
    variants: tuple[str, ...] | None = None
    kept: tuple[int, ...] | None = None
    worlds: tuple[int, ...] | None = None
    outputs: tuple[str, ...] | None = None
    special: bool = False  # NaN and infinities in its inputs


_DRAWN: OrderedDict[tuple[int, bool], Any] = OrderedDict()


def case_of(task: Task) -> Case:
    """The case of a task."""
    key = task.seed, task.special
    if key not in _DRAWN:
        _DRAWN[key] = drawn(task.seed, special=task.special)
        while len(_DRAWN) > 4:
            _DRAWN.popitem(last=False)
    case: Case = _DRAWN[key][0]
    if task.kept is not None:
        case = case.with_steps(
            [case.steps[i] for i in task.kept], None if task.outputs is None else list(task.outputs)
        )
    if task.worlds is not None:
        case = case.with_worlds(task.worlds)
    return case


def run(task: Task) -> Iterator[dict[str, Any]]:
    """Yield findings; each stage is announced before it begins."""
    yield {"stage": "draw"}
    case = case_of(task)
    _, refusals, tried = _DRAWN[task.seed, task.special]
    yield {
        "ops": case.ops(), "refusals": dict(refusals), "tried": tried, "worlds": case.worlds,
        "opset": case.opset, "outputs": case.outputs,
    }  # fmt: skip
    for variant in task.variants or variants_of(task.seed, case.worlds, task.special):
        yield {"stage": variant}
        yield {"finding": judged(case, variant).as_dict()}

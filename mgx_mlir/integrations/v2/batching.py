"""Batching: requests of one model joined to one run, and its results split again."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.models import ServedModel

Outputs = list[np.ndarray]


@dataclass(frozen=True)
class Call:
    """One request's tensors, its rows, and the model that it is for."""

    model: ServedModel
    inputs: Mapping[str, np.ndarray]
    rows: int

    @property
    def key(self) -> Any:
        """Key of calls that can be batched: the model, and all dims but the first."""
        if self.model.max_batch_size == 1:
            return id(self)
        shapes = sorted((n, a.shape[1:], a.dtype.str) for n, a in self.inputs.items())
        return (self.model.name, self.model.version, tuple(shapes))


def groups(calls: Sequence[Call]) -> list[list[int]]:
    """Return the indices of calls that run together, each group within its model's limit."""
    found: list[list[int]] = []
    last: dict[Any, tuple[list[int], int]] = {}
    for i, call in enumerate(calls):
        group, rows = last.get(call.key, ([], 0))
        if not group or rows + call.rows > call.model.max_batch_size:
            group, rows = [], 0
            found.append(group)
        group.append(i)
        last[call.key] = (group, rows + call.rows)
    return found


def run_together(calls: Sequence[Call]) -> list[Outputs | Exception]:
    """Run calls of one group; return the outputs or the error of each.

    If the batched run fails, each call runs alone, so that one wrong request does not fail the
    others.
    """
    if len(calls) > 1:
        with contextlib.suppress(Exception):  # running each call alone shows which one is at fault
            return list(_split(calls, _joined(calls)))
    found: list[Outputs | Exception] = []
    for call in calls:
        try:
            found.append(call.model.program.run(dict(call.inputs)))
        except Exception as e:
            found.append(e)
    return found


def _joined(calls: Sequence[Call]) -> Outputs:
    names = calls[0].model.program.input_names
    feed = {n: np.concatenate([c.inputs[n] for c in calls]) for n in names}
    return calls[0].model.program.run(feed)


def _split(calls: Sequence[Call], outputs: Outputs) -> list[Outputs]:
    ends = np.cumsum([c.rows for c in calls])
    if any(o.shape[:1] != (ends[-1],) for o in outputs):
        raise V2Error(f"the outputs expected {ends[-1]} rows", 500)
    parts = [np.split(o, ends[:-1]) for o in outputs]
    return [[p[i] for p in parts] for i in range(len(calls))]

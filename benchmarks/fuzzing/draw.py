"""Draws the graph of a seed."""

from __future__ import annotations

from collections import Counter

import numpy as np

from benchmarks.fuzzing import (  # noqa: F401  (register)
    contrib,
    control,
    draws,
    layers,
    pointwise,
    quantised,
    views,
    windows,
)
from benchmarks.fuzzing.graph import Case, Graph, Rejected, finished
from benchmarks.fuzzing.growers import GROWERS


def drawn(
    seed: int, least: int = 4, most: int = 14, *, special: bool = False
) -> tuple[Case, Counter[str], int]:
    """The case of a seed, what onnxruntime refused on the way by message, and how many tries."""
    with np.errstate(all="ignore"):
        g = Graph(seed, special)
        wanted = g.size(least, most)
        names = [n for n, (_, _, since) in GROWERS.items() if since <= g.opset]
        weights = np.array([GROWERS[n][1] for n in names])
        added, step = 0, 0
        while added < wanted and step < 8 * wanted:
            step += 1
            # a separate random stream: a choice that depends on the machine affects only this step
            g.rng = np.random.default_rng([seed, step])
            name = names[int(g.rng.choice(len(names), p=weights / weights.sum()))]
            try:
                GROWERS[name][0](g)
                added += 1
            except Rejected:
                continue
        g.rng = np.random.default_rng([seed, 1 << 20])
        return finished(g), g.refusals, g.tried

"""Drawn graphs of 28 kinds on six GPUs: code without scratch, right numbers, no alarm of a check.

60 graphs, ten for each GPU, take about five minutes of CPU time. Other seeds: `python -m
benchmarks.emulator.drawn --first 7000 --seeds 60`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.emulator.drawn.__main__ import ARCHES, NOT_EMULATED, in_child
from benchmarks.emulator.drawn.graph import KINDS, drawn

pytestmark = pytest.mark.emulator


def test_kinds_take_turns() -> None:
    """Each seed has one graph, and two calls where its dims are dynamic."""
    found = {drawn(seed)[0] for seed in range(len(KINDS))}
    assert found == set(KINDS)
    first, again = drawn(40)[1].finished(), drawn(40)[1].finished()
    assert first.SerializeToString() == again.SerializeToString()


@pytest.mark.parametrize(
    "seed",
    [3, 14, 21, 38, *(pytest.param(n, marks=pytest.mark.slow) for n in range(5000, 5060))],
)
def test_drawn_graphs(seed: int, library: Path) -> None:
    arch = ARCHES[(seed + seed // len(KINDS)) % len(ARCHES)]
    row = in_child(seed, None, arch)
    assert row["bad"] == [], (arch, row)
    assert arch in NOT_EMULATED or "error" in row

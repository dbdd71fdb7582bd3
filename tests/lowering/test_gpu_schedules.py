"""Schedules of GPU kernels are data: each chip has a file, as its script writes it."""

from __future__ import annotations

import json

import pytest

from benchmarks import gpu_tiles
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import AttentionShape, choose


@pytest.mark.parametrize("arch", gpu_tiles.ARCHS)
def test_a_file_has_what_judged_it_and_when(arch: str) -> None:
    whole = json.loads((gpu_tiles.CONFIGS / f"{arch}.json").read_text())
    stored = whole.pop("attention")
    assert whole == gpu_tiles.matmuls(CHIPS[arch])
    assert stored["judge"] in gpu_tiles.JUDGES.values()
    assert stored["made"] >= "2026-11-28"
    if stored["judge"] == gpu_tiles.JUDGES["estimate"]:
        assert stored["clocks"] == gpu_tiles.table(arch, "estimate", list(gpu_tiles.ROWS))


def test_rows_that_no_table_has_are_taken_for_the_next_longer_ones() -> None:
    known = schedules.attention("gfx942", 128, 128)
    assert schedules.attention("gfx942", 112, 112) == known
    assert schedules.attention("gfx942", 64, 192) == known
    longest = schedules.attention("gfx942", 256, 256)
    assert schedules.attention("gfx942", 512, 512) == longest


def test_the_clocks_of_a_file_choose_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that takes no time is taken where it fits."""
    shape = AttentionShape(12, 128, 128, 64, 64)
    chosen = choose("gfx942", shape)
    assert chosen is not None
    other = (1, 16, 1)
    assert other != (chosen.waves, chosen.keys, chosen.lines)
    clocks = dict(schedules.attention("gfx942", 64, 64))
    clocks[other] = schedules.AttentionClocks(0.0, 0.0, 0.0)
    monkeypatch.setattr(schedules, "attention", lambda *_: {other: clocks[other]})
    found = choose("gfx942", shape)
    assert found is not None
    assert (found.waves, found.keys, found.lines) == other

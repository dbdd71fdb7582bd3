"""Instructions of emulated calls: clocks and bounds by hand, from counts made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mgx_mlir.debug.executed import executed
from mgx_mlir.hardware.chips import CHIPS

CHIP = CHIPS["gfx942"]


def statistics(groups: int, waves: int, counts: dict[str, int], launches: int = 1) -> Any:
    one = {"kernel": "k", "groups": groups, "waves": waves, "instructions": sum(counts.values())}
    rows = [{"function": "k", "text": t, "count": n} for t, n in counts.items()]
    return {"launches": [one] * launches, "executed": rows}


def test_matrix_instructions() -> None:
    """304 workgroups of 4 waves, one for each unit: 8192 operations at 2048 a unit and clock."""
    mfma = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]"
    e = executed(statistics(304, 1216, {mfma: 1216}), CHIP)["k"]
    assert (e.launches, e.workgroups, e.fill) == (1, 304, 1.0)
    assert e.operations == 1216 * 2 * 16**3
    assert e.us["matrix"] == pytest.approx(4 * 2 * 16**3 / 2048 / 2100)
    assert e.bound_us == e.us["matrix"]


def test_rounds_and_fill() -> None:
    """One workgroup more than there are units takes twice as long; a quarter fills a quarter."""
    add = {"v_add_f32_e32 v0, v1, v2": 1}
    one = executed(statistics(76, 304, {t: 304 * n for t, n in add.items()}), CHIP)["k"]
    two = executed(statistics(305, 1220, {t: 1220 * n for t, n in add.items()}), CHIP)["k"]
    assert one.fill == 0.25
    assert one.us["vector"] == pytest.approx(4 / 2100)  # 64 lanes on 16
    assert two.us["vector"] == pytest.approx(2 * one.us["vector"])
    # a wave that is alone has one of the four SIMDs
    alone = executed(statistics(76, 76, {t: 76 * n for t, n in add.items()}), CHIP)["k"]
    assert alone.us["vector"] == pytest.approx(one.us["vector"])


def test_launches_add_up() -> None:
    """Counts are those of all launches: twice as many of both take twice as long, not more."""
    add = "v_add_f32_e32 v0, v1, v2"
    once = executed(statistics(304, 304, {add: 304}), CHIP)["k"]
    twice = executed(statistics(304, 304, {add: 608}, launches=2), CHIP)["k"]
    assert twice.launches == 2
    assert twice.bound_us == pytest.approx(2 * once.bound_us)


def test_lds() -> None:
    """LDS time goes by bytes: a compute unit reads 128 a clock, whatever the instructions."""
    reads = {"ds_read_b128 v[0:3], v4": 304, "ds_read_u16 v0, v1": 912}
    e = executed(statistics(304, 304, reads), CHIP)["k"]
    assert e.mix.lds_wide_share == 0.25
    assert e.us["lds"] == pytest.approx((1024 / 128 + 3 * 128 / 128) / 2100)


def test_pairs() -> None:
    """A pair of gfx11 is one instruction; what other kernels execute does not count."""
    found = statistics(96, 96, {"v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5": 96})
    found["executed"].append({"function": "other", "text": "v_add_f32 v0, v1, v2", "count": 9})
    e = executed(found, CHIPS["gfx1100"])["k"]
    assert (e.mix.vector, e.mix.matrix) == (96, 0)

"""Weights rounded to blocks: how far off, and what stays exact."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from mgx_mlir.text.blocks import rounded


@pytest.mark.parametrize(("bits", "steps"), [(4, 15), (8, 254)])
def test_rounded_by_half_a_step(bits: Literal[4, 8], steps: int) -> None:
    rng = np.random.default_rng(bits)
    weights = rng.standard_normal((5, 70)).astype(np.float32)
    weights[2, 32:64] = 0
    weights[3, 10] = 0
    made = rounded(weights, bits)
    assert made.codes.shape == (5, 3, 32 * bits // 8)
    got = made.floats()
    for block in (slice(0, 32), slice(32, 64), slice(64, 70)):
        cut = weights[:, block]
        low, high = np.minimum(cut.min(1), 0), np.maximum(cut.max(1), 0)
        span = high - low if bits == 4 else 2 * np.abs(cut).max(1)
        # a zero point is a whole code, which moves the ends by half a step more
        most = span / steps * (1.001 if bits == 4 else 0.501)
        assert (np.abs(got[:, block] - cut).max(1) <= most).all()
    assert not got[2, 32:64].any()
    assert got[3, 10] == 0

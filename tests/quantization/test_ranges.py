"""Statistics of a calibration: extremes, histograms, thresholds, sums by channel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgx_mlir.core.errors import UsageError
from mgx_mlir.quantization.ranges import METHODS, Observer


def seen(*arrays: np.ndarray, axes: tuple[int, ...] = ()) -> Observer:
    observer = Observer(frozenset(axes))
    for a in arrays:
        observer.add(a)
    return observer


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40), min_size=1))
def test_every_element_is_counted_once(parts: list[list[float]]) -> None:
    arrays = [np.array(p, np.float32) for p in parts]
    every = np.concatenate(arrays)
    found = seen(*arrays)
    assert (found.lowest, found.highest) == (every.min(), every.max())
    assert found.count == every.size
    assert found.bins.sum() == (every.size if np.abs(every).max() else 0) or not found.top
    assert found.range("minmax") == (every.min(), every.max())
    for method in METHODS:
        low, high = found.range(method) or (0.0, 0.0)
        assert every.min() <= low or np.isclose(low, every.min())
        assert high <= every.max() or np.isclose(high, every.max())


def test_percentiles_are_numpys() -> None:
    x = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    low, high = seen(*np.split(x, 8)).range("percentile", 99.0) or (0, 0)
    want = np.percentile(x, [0.5, 99.5])
    assert np.allclose((low, high), want, atol=2 * 2 * np.abs(x).max() / 4096 + 1e-6)


@pytest.mark.parametrize("method", ["percentile", "entropy", "mse"])
def test_an_outlier_is_cut_off(method: str) -> None:
    """One element of 1e5 that is 60 times the others' range costs all of them their steps.

    By squares it weighs 300^2 beside 1e5 steps' errors: so much of it stays.
    """
    x = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
    x[17] = 300
    _, high = seen(x).range(method) or (0, 0)
    assert 2 < high < (250 if method == "mse" else 100)


@pytest.mark.parametrize("method", METHODS)
def test_zeros_do_not_cut_off_what_is_beside_them(method: str) -> None:
    """Behind a Relu most elements may be 0, which no scale changes."""
    x = np.random.default_rng(4).standard_normal(200_000).astype(np.float32)
    x[:150_000] = 0
    x = np.maximum(x, 0)
    _, high = seen(x).range(method) or (0, 0)

    def error(t: float) -> float:
        return float(((np.clip(np.rint(x / (t / 127)), 0, 127) * (t / 127) - x) ** 2).mean())

    assert error(high) <= 1.5 * error(float(x.max()))


def test_squares_choose_about_the_best_threshold() -> None:
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(100_000) ** 3).astype(np.float32)
    low, high = seen(x).range("mse") or (0, 0)

    def error(t: float) -> float:
        scale = t / 127
        return float(((np.clip(np.rint(x / scale), -127, 127) * scale - x) ** 2).mean())

    best = min(error(t) for t in np.linspace(0.05, 1, 200) * np.abs(x).max())
    assert error(max(-low, high)) <= 1.1 * best


def test_nan_and_infinities_are_left_out() -> None:
    found = seen(np.array([np.nan, np.inf, -np.inf, 2, -3], np.float32), np.full(3, np.nan))
    assert (found.lowest, found.highest) == (-3, 2)
    assert seen(np.full(3, np.nan)).range("mse") is None
    assert seen(np.zeros((0, 3))).range("minmax") is None


def test_sums_by_channel() -> None:
    x = np.random.default_rng(3).standard_normal((2, 5, 4, 3)).astype(np.float32)
    found = seen(x, 2 * x, axes=(1, -1))
    assert np.allclose(found.channels[1].means, 1.5 * x.mean((0, 2, 3)), atol=1e-6)
    assert np.allclose(found.channels[-1].largest, 2 * np.abs(x).max((0, 1, 2)))


def test_errors() -> None:
    with pytest.raises(UsageError, match="unknown method 'best'"):
        seen(np.ones(3)).range("best")
    with pytest.raises(UsageError, match="percentile expected"):
        seen(np.ones(3)).range("percentile", 101)

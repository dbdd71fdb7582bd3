"""The comparison of verify, against formulas and by planted differences."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.debug.compare import compare, compare_all
from mgx_mlir.debug.tolerances import FULL_PRECISION, Tolerances

RNG = np.random.default_rng(4)


def test_subnormal_numbers_of_a_processor_are_0() -> None:
    a, b = np.zeros(3, np.float32), np.array([1e-40, -1e-45, 0], np.float32)
    assert compare("y", a, b, FULL_PRECISION).passed
    assert not compare("y", a, b + np.float32(2e-38), FULL_PRECISION).passed


def test_figures_are_those_of_the_formulas() -> None:
    b = RNG.standard_normal((70, 41)).astype(np.float32)
    a = b + RNG.standard_normal(b.shape).astype(np.float32) * np.float32(1e-5)
    found = compare("y", a, b, Tolerances())
    wide, other = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(wide - other)
    largest = max(np.abs(wide).max(), np.abs(other).max())
    assert found.passed
    assert found.max_abs == difference.max()
    assert found.worst == np.unravel_index(difference.argmax(), b.shape)
    assert found.max_rel == pytest.approx((difference / np.abs(other)).max())
    assert found.rms == pytest.approx(np.linalg.norm(wide - other) / (np.sqrt(b.size) * largest))


def test_many_chunks_agree_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    b = RNG.standard_normal(1000)
    a = b + RNG.standard_normal(1000) * 0.01
    whole = compare("y", a, b, Tolerances())
    monkeypatch.setattr("mgx_mlir.debug.compare.CHUNK", 7)
    parts = compare("y", a, b, Tolerances())
    assert (parts.count, parts.max_abs, parts.worst) == (whole.count, whole.max_abs, whole.worst)
    assert parts.different == whole.different
    assert parts.rms == pytest.approx(whole.rms)
    assert not whole.passed


def test_one_element_of_many_fails_elementwise_though_rms_holds() -> None:
    b = np.ones(10000, np.float32)
    a = b.copy()
    a[1234] = 1.01
    found = compare("y", a, b, Tolerances())
    assert found.rms < 1e-3
    assert not found.passed
    assert found.different == [((1234,), pytest.approx(1.01), 1.0)]


def test_small_differences_everywhere_fail_by_rms_though_elements_hold() -> None:
    b = np.full(100, 1e-4)
    found = compare("y", b * 1.5, b, Tolerances(atol=1e-3, scaled=False))
    assert found.count == 0
    assert found.problems == ["rms 0.333 is above 0.001"]


def test_full_precision_limits_are_relative_to_the_largest_magnitude() -> None:
    b = np.linspace(-20, 20, 1001)
    a = b.copy()
    a[500] += 9e-4  # b is 0 there: 4.5e-5 of the largest
    assert compare("y", a, b, FULL_PRECISION).passed
    a[500] += 2e-4
    assert not compare("y", a, b, FULL_PRECISION).passed


def test_the_default_atol_shrinks_with_small_outputs() -> None:
    b = np.linspace(1e-4, 1e-3, 1000)
    a = b.copy()
    a[500] += 5e-6  # rms is 5e-6 / sqrt(1000) / 1e-3: below the limit
    assert not compare("y", a, b, Tolerances()).passed
    assert compare("y", a, b, Tolerances().with_limits(None, 1e-3, None)).passed


@pytest.mark.parametrize(
    ("a", "b", "passed"),
    [
        ([1, np.nan], [1, np.nan], True),
        ([1, np.inf], [1, np.inf], True),
        ([1, np.inf], [1, -np.inf], False),
        ([1, np.nan], [1, 2], False),
        ([1, 2], [1, np.inf], False),
        ([1, np.nan], [1, np.inf], False),
        ([np.nan, np.nan], [np.nan, np.nan], False),
    ],
)
def test_not_finite(a: list[float], b: list[float], passed: bool) -> None:
    found = compare("y", np.array(a, np.float32), np.array(b, np.float32), Tolerances())
    assert found.passed is passed
    both = np.isnan(a) & np.isnan(b)
    assert any(w.startswith("undefined: ") for w in found.warnings) == both.any()
    rest = ~(np.isfinite(a) & np.isfinite(b)) & ~both
    assert any("NaN or inf" in w for w in found.warnings) == rest.any()


def test_all_zero_is_said() -> None:
    found = compare("y", np.zeros(3), np.zeros(3), Tolerances())
    assert found.passed
    assert found.warnings == ["target: all elements are 0", "reference: all elements are 0"]
    assert not compare("y", np.zeros(3), np.ones(3), Tolerances()).passed


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.bool_])
def test_integers_are_equal_or_not(dtype: type) -> None:
    b = np.array([0, 1, 1], dtype)
    a = np.array([0, 1, 0], dtype)
    assert compare("y", b, b, Tolerances()).passed
    assert not compare("y", a, b, Tolerances()).passed
    loose = Tolerances().with_limits(1, 1, None)
    assert compare("y", a, b, loose).passed


def test_large_integers_that_a_double_confuses() -> None:
    b = np.array([2**62], np.int64)
    assert not compare("y", b + 1, b, Tolerances()).passed


def test_low_precision_types() -> None:
    b = np.array([1, 2, 3], ml_dtypes.bfloat16)
    assert compare("y", b, b, Tolerances()).passed
    assert not compare("y", b, b + b, Tolerances()).passed


def test_shapes_and_types_must_match() -> None:
    a = np.zeros((2, 3), np.float32)
    assert compare("y", a, a.reshape(3, 2), Tolerances()).problems == [
        "shape mismatch: target has float_type, {2, 3}, reference has float_type, {3, 2}"
    ]
    assert not compare("y", a, a.astype(np.float64), Tolerances()).passed
    assert compare("y", a[:0], a[:0], Tolerances()).passed
    assert compare("y", np.float32(3), np.float32(3), Tolerances()).passed


def test_outputs_go_by_name_else_by_position() -> None:
    one, two = np.ones(2), np.full(2, 2.0)
    found = compare_all(["a", "b"], [one, two], ["b", "a"], [two, one], [Tolerances()] * 2)
    assert [(c.name, c.passed, c.warnings) for c in found] == [("a", True, []), ("b", True, [])]
    found = compare_all(["a"], [one], ["c"], [one], [Tolerances()])
    assert found[0].passed
    assert found[0].warnings == ["compared with reference's 'c' by position"]
    found = compare_all(["a"], [one], ["a", "b"], [one, two], [Tolerances()])
    assert [c.passed for c in found] == [True, False]
    found = compare_all(["a", "b"], [one, two], ["a"], [one], [Tolerances()] * 2)
    assert [c.passed for c in found] == [True, False]

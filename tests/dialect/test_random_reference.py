"""References of generators: random numbers, categories, ranges, buffers."""

from __future__ import annotations

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import RunError, ShapeError
from mgx_mlir.core.shapes import TensorType
from tests.dialect.evaluation import infer
from tests.support.ops import evaluate
from tests.support.oracle import run_node


def test_random_uniform_is_the_mersenne_twister() -> None:
    """The C++ standard states the 10000th number of mt19937 with its default seed."""
    found = evaluate("random_uniform", np.array(5489, np.uint64), np.zeros(10000, np.uint32))
    assert int(found[-1]) == 4123659995


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8, np.int64])
def test_random_uniform_spreads(kind: type) -> None:
    seed = np.array([3], np.int32)
    found = evaluate("random_uniform", seed, np.zeros((100, 100), kind))
    unit = found.astype(np.float64)
    if found.dtype.kind == "i":
        unit = unit / (float(np.iinfo(kind).max) + 1)
    assert 0 <= unit.min() < 0.02
    assert 0.98 < unit.max() < 1 or kind is np.int64
    assert abs(unit.mean() - 0.5) < 0.01
    again = evaluate("random_uniform", seed, np.zeros((100, 100), kind))
    np.testing.assert_array_equal(found, again)
    other = evaluate("random_uniform", seed + 1, np.zeros((100, 100), kind))
    assert (found != other).any()


def test_random_seed_differs() -> None:
    found = {int(evaluate("random_seed")) for _ in range(4)}
    assert len(found) > 1
    assert evaluate("random_seed", dtype=dtypes.INT32).dtype == np.int32


def test_multinomial() -> None:
    cdf = np.array([[0.5, 0.5, 2.0, 4.0], [1, 2, 3, 4]], np.float32)
    r = np.array([[0, 0.1, 0.125, 0.4, 0.5, 0.999], [0, 0.24, 0.25, 0.5, 0.75, 0.99]], np.float32)
    found = evaluate("multinomial", cdf, r)
    assert found.tolist() == [[0, 0, 2, 2, 3, 3], [0, 0, 1, 2, 3, 3]]
    assert evaluate("multinomial", cdf, r, dtype=dtypes.INT64).dtype == np.int64
    rng = np.random.default_rng(0)
    many = evaluate("multinomial", cdf[:1], rng.random((1, 40000)).astype(np.float32))
    share = np.bincount(many[0], minlength=4) / many.size
    np.testing.assert_allclose(share, [0.125, 0, 0.375, 0.5], atol=0.01)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "kind"),
    [
        (0, 10, 3, np.int64),
        (10, 0, -4, np.int32),
        (3, 0, 1, np.int64),
        (0, 1, 0.25, np.float32),
        (1, -1, -0.3, np.float64),
        (5, 5, 1, np.int16),
    ],
)
def test_dynamic_range(start: float, limit: float, delta: float, kind: type) -> None:
    values = [np.array(v, kind) for v in (start, limit, delta)]
    np.testing.assert_allclose(evaluate("dynamic_range", *values), run_node("Range", *values))


def test_dynamic_range_errors() -> None:
    one, zero = np.array(1.0, np.float32), np.array(0.0, np.float32)
    with pytest.raises(RunError, match="delta expected a number other than 0"):
        evaluate("dynamic_range", zero, one, zero)
    with pytest.raises(RunError, match="expected at most 3 elements, got 10"):
        evaluate("dynamic_range", zero, np.float32(10) * one, one, max_output=3)
    with pytest.raises(RunError, match="expected finite bounds"):
        evaluate("dynamic_range", zero, np.array(np.inf, np.float32), one)


def test_buffers() -> None:
    assert evaluate("allocate", None, shape=TensorType(dtypes.HALF, (2, 3))).shape == (2, 3)
    assert infer("allocate", "tensor<2xi64>", buf_type="half") == ["tensor<?x?xf16>"]
    filled = evaluate("fill", np.array([2.5], np.float16), np.zeros((2, 3), np.float16))
    assert filled.tolist() == [[2.5] * 3] * 2
    with pytest.raises(ShapeError, match="expected one of the attribute 'shape'"):
        infer("allocate", None)
    with pytest.raises(ShapeError, match="operand 'value' expected one element"):
        infer("fill", "tensor<2xf32>", "tensor<4xf32>")

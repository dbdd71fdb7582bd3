"""Views, broadcasts, slices, pads and concatenations against numpy and ONNX Runtime."""

import numpy as np
import pytest

from mgx_mlir.core.dtypes import DTYPES
from tests.support.ops import evaluate
from tests.support.oracle import run_node

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)


def same(a, b):
    assert a.shape == b.shape
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "dims", [[0, -1], [-1], [2, 0, -1], [5, 4, 3, 2], [0, 0, 0, 0], [-1, 10], [1, 0, -1, 1]]
)
def test_reshape(dims):
    if dims == [1, 0, -1, 1]:
        x = X.reshape(2, 6, 10)
    else:
        x = X
    same(evaluate("reshape", x, dims=dims), run_node("Reshape", x, np.array(dims)))
    same(evaluate("reshape", x, np.array(dims)), run_node("Reshape", x, np.array(dims)))


@pytest.mark.parametrize("axis", range(-4, 5))
def test_flatten(axis):
    same(evaluate("flatten", X, axis=axis), run_node("Flatten", X, axis=axis))


@pytest.mark.parametrize("permutation", [[3, 2, 1, 0], [0, 2, 3, 1], [1, 0, 3, 2]])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_transpose_of_every_dtype(permutation, dtype):
    x = (X * 3).astype(dtype.np)
    same(
        evaluate("transpose", x, permutation=permutation).view(f"u{dtype.size}"),
        x.view(f"u{dtype.size}").transpose(permutation),
    )


@pytest.mark.parametrize(
    ("axes", "steps", "dims"),
    [
        ([0], [], (1, 4, 6)),
        ([-1], [], (4, 6, 1)),
        ([0, 3], [], (1, 4, 6, 1)),
        ([1, 2], [], (4, 1, 1, 6)),
        ([0], [2], (2, 2, 6)),
        ([1], [3], (4, 3, 2)),
        ([0, 2], [4, 2], (4, 1, 2, 3)),
        ([1, 2], [2, 3], (4, 2, 3, 1)),
    ],
)
def test_unsqueeze(axes, steps, dims):
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    same(evaluate("unsqueeze", x, axes=axes, steps=steps), np.arange(24.0).reshape(dims))


@pytest.mark.parametrize("axes", [[0], [0, 2], [-1], [2, -4]])
def test_squeeze(axes):
    x = X[:1, :, :1, :1]
    same(evaluate("squeeze", x, axes=axes), run_node("Squeeze", x, np.array(axes)))


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((3,), [2, 3]), ((3, 1), [2, 1, 6]), ((), [2]), ((2, 3), [1]), ((1, 3), []), ((1,), [0, 1])],
)
def test_broadcast_with_dims(shape, dims):
    x = np.array(RNG.standard_normal(shape), np.float32)
    same(
        evaluate("broadcast_with_dims", x, np.array(dims, np.int64)),
        run_node("Expand", x, np.array(dims, np.int64)),
    )


def test_multibroadcast_of_many():
    parts = [X[0, 0], X[:, :1, :1, :1], X[0, :, :1]]
    same(evaluate("multibroadcast", parts), np.broadcast_arrays(*parts)[0])


BIG = 2**63 - 1
SLICES = [
    ([0], [1], [0]),
    ([0, 1], [2, 3], [0, 1]),
    ([-2], [BIG], [-1]),
    ([1, -3, 0], [BIG, -1, 2], [3, 2, 0]),
    ([-BIG], [2], [2]),
    ([3], [1], [3]),
    ([9], [12], [3]),
    ([0], [-9], [1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes"), SLICES)
def test_slice(starts, ends, axes):
    run_time = [np.array(v, np.int64) for v in (starts, ends, axes)]
    want = run_node("Slice", X, *run_time)
    same(evaluate("slice", X, starts=starts, ends=ends, axes=axes), want)
    same(evaluate("slice", X, *run_time), want)
    same(evaluate("slice", X, run_time[0], None, None, ends=ends, axes=axes), want)
    same(evaluate("slice", X, None, run_time[1], None, starts=starts, axes=axes), want)
    same(evaluate("slice", X, run_time[0], run_time[1], None, axes=axes), want)


@pytest.mark.parametrize("step", [1, 2, 3, 7])
@pytest.mark.parametrize("axis", [0, 2, -1])
def test_step_and_reverse(step, axis):
    at = [np.array([v], np.int64) for v in (0, BIG, axis, step)]
    same(evaluate("step", X, axes=[axis], steps=[step]), run_node("Slice", X, *at))
    back = [np.array([v], np.int64) for v in (-1, -BIG, axis, -1)]
    same(evaluate("reverse", X, axes=[axis]), run_node("Slice", X, *back))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize(
    "pads", [[0, 1, 0, 2, 0, 0, 0, 0], [0, 0, 3, 4, 0, 0, 1, 2], [1, 2, 3, 4, 1, 1, 2, 0]]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_pad(mode, pads, dtype):
    x = (X * 9).astype(dtype)
    want = run_node("Pad", x, np.array(pads, np.int64), np.array(7, dtype), mode=mode)
    same(evaluate("pad", x, pads=pads, mode=mode, value=7.0), want)


@pytest.mark.parametrize("axis", [0, 1, 3, -2])
def test_concat(axis):
    parts = [np.take(X, range(n), axis) for n in (1, 2, 0)]
    same(evaluate("concat", parts, axis=axis), run_node("Concat", *parts, axis=axis))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (1, 3), (3, 4), (2, 0)])
def test_dimensions_of(start, end):
    want = run_node("Shape", X, start=start, **({"end": end} if end else {}))
    same(evaluate("dimensions_of", X, start=start, end=end), want)


def test_many_values_of_different_types():
    parts = [np.full((2, 1 + i % 3), i, np.float32) for i in range(60)]
    same(evaluate("concat", parts, axis=1), np.concatenate(parts, 1))
    equal = [np.full((2, 1), i, np.float32) for i in range(200)]
    same(evaluate("concat", equal, axis=1), np.concatenate(equal, 1))

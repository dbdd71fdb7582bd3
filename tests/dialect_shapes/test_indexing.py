"""Gathers, scatters and index ops against ONNX Runtime, and against plain loops."""

import numpy as np
import pytest

from tests.support.ops import evaluate
from tests.support.oracle import run_node

RNG = np.random.default_rng(7)
DATA = RNG.standard_normal((4, 5, 6)).astype(np.float32)


def same(a, b):
    assert a.shape == b.shape
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,), (1, 0, 2)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather(axis, shape, dtype):
    at = RNG.integers(-4, 4, shape).astype(dtype)
    same(evaluate("gather", DATA, at, axis=axis), run_node("Gather", DATA, at, axis=axis))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.uint64, np.int16])
def test_gather_of_every_index_type_clamps(dtype):
    at = np.array([0, 3, 4, 100, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    places = [int(v) + 4 if v < 0 else int(v) for v in at]
    want = np.stack([DATA[min(max(p, 0), 3)] for p in places])
    same(evaluate("gather", DATA, at), want)


@pytest.mark.parametrize(
    ("shape", "batch"),
    [
        ((3, 1), 0),
        ((2, 2, 2), 0),
        ((3, 3), 0),
        ((4, 1), 1),
        ((4, 2, 2), 1),
        ((4, 5, 1), 2),
        ((1,), 0),
    ],
)
def test_gathernd(shape, batch):
    at = RNG.integers(-4, 4, shape)
    want = run_node("GatherND", DATA, at, batch_dims=batch)
    same(evaluate("gathernd", DATA, at, batch_dims=batch), want)


SCATTERS = ["none", "add", "mul", "min", "max"]


@pytest.mark.parametrize("kind", SCATTERS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_scatter(kind, axis, dtype):
    data = (DATA * 5).astype(dtype)
    if kind == "none":  # equal indices have no defined winner in ONNX
        at = np.argsort(RNG.random((4, 4, 4)), axis)  # distinct along the axis
    else:
        at = RNG.integers(-4, 4, (3, 4, 5))
    new = (RNG.standard_normal(at.shape) * 5).astype(dtype)
    want = run_node("ScatterElements", data, at, new, axis=axis, reduction=kind)
    got = evaluate(f"scatter_{kind}", data, at, new, axis=axis)
    # repeated f32 sums and products, maybe in another order
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("skip", [False, True])
def test_scatter_out_of_range(skip):
    data = np.zeros((4, 2), np.float32)
    at = np.array([[9, -9], [-1, 0], [4, -5]], np.int64)
    new = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    want = data.copy()
    for (row, column), i in np.ndenumerate(at):
        place = i + 4 if i < 0 else i
        if skip and not 0 <= place < 4:
            continue
        want[min(max(place, 0), 3), column] += new[row, column]
    same(evaluate("scatter_add", data, at, new, skip_out_of_bounds=skip), want)


def test_scatter_keeps_the_last_of_equal_indices():
    at, new = np.array([1, 1, 2, 1]), np.array([5, 6, 7, 8], np.float32)
    got = evaluate("scatter_none", np.zeros(4, np.float32), at, new)
    same(got, np.array([0, 8, 7, 0], np.float32))


@pytest.mark.parametrize("kind", SCATTERS)
@pytest.mark.parametrize("shape", [(3, 1), (2, 2), (2, 3), (2, 2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_scatternd(kind, shape, dtype):
    data = (DATA * 5).astype(dtype)
    k = shape[-1]
    rows = int(np.prod(shape[:-1]))
    if kind == "none":
        at = np.stack([RNG.permutation(4)[:rows] for _ in range(k)], -1).reshape(shape)
    else:
        at = RNG.integers(-4, 4, shape)
    new = (RNG.standard_normal((*shape[:-1], *data.shape[k:])) * 5).astype(dtype)
    want = run_node("ScatterND", data, at, new, reduction=kind)
    np.testing.assert_allclose(
        evaluate(f"scatternd_{kind}", data, at, new), want, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("run_time", [False, True])
def test_onehot(axis, run_time):
    at = np.array([[0, 3, -1], [4, 7, -5]], np.int64)
    values = np.array([2, 9], np.float32)
    depth = np.array(5, np.int64)
    want = run_node("OneHot", at, depth, values, axis=axis)
    got = (
        evaluate("onehot", at, depth, values, axis=axis)
        if run_time
        else evaluate("onehot", at, None, values, axis=axis, depth=5)
    )
    same(got, want)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_, np.uint8])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 3)])
def test_nonzero(dtype, shape):
    x = RNG.integers(0, 2, shape).astype(dtype)
    want = run_node("NonZero", x, reference=dtype == np.uint8)
    same(evaluate("nonzero", x), want)
    padded = evaluate("nonzero", x, padded=True)
    assert padded.shape == (x.ndim, x.size)
    same(padded[:, : want.shape[1]], want)
    assert not padded[:, want.shape[1] :].any()

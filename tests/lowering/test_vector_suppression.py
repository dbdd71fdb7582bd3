"""nonmaxsuppression in our own loops: onnxruntime and a plain search agree on every kept box."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import mgx_mlir
from benchmarks.oracle import session
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import Programs
from tests.support.models import parsed_bytes

STEP = "fuse_pointwise_reduce"
pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TEXT = """g (float[b,n,4] x, float[b,c,n] s, int64 m, float[1] i, float t)
          => (int64[k,3] y, int64[l,3] all) {
    y = NonMaxSuppression <center_point_box = CENTER> (x, s, m, i, t)
    all = NonMaxSuppression <center_point_box = CENTER> (x, s, m, i)
}"""


@cache
def model(center: int) -> bytes:
    return parsed_bytes(TEXT.replace("CENTER", str(center)), opset=18)


@cache
def compiled(center: int) -> mgx_mlir.Program:
    program = mgx_mlir.compile(model(center), "cpu", cache=False, threads=2)
    assert not program.executable.fallbacks
    return program


def plainly(
    boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float, center: int
) -> list[list[int]]:
    """Search box by box, in f32; NaN comes last."""
    first, second = boxes[..., :2], boxes[..., 2:]
    low, high = np.minimum(first, second), np.maximum(first, second)
    if center:
        low, high = first - second / 2, first + second / 2
    rows = []
    for b, c in np.ndindex(scores.shape[:2]):
        of, kept = scores[b, c], list[int]()
        order = np.lexsort((-np.where(np.isnan(of), 0, of), np.isnan(of)))
        for i in [i for i in order.tolist() if least == -np.inf or of[i] > least]:
            if len(kept) >= most:
                break
            if not (shared(low[b, i], high[b, i], low[b, kept], high[b, kept]) > overlap).any():
                kept.append(i)
        rows += [[b, c, i] for i in kept]
    return rows


def shared(
    low: np.ndarray, high: np.ndarray, other_low: np.ndarray, other_high: np.ndarray
) -> np.ndarray:
    """Return intersection over union of a box and others, 0 where one has no area."""
    sides = np.minimum(high, other_high) - np.maximum(low, other_low)
    both = np.where((sides > 0).all(1), sides[:, 0] * sides[:, 1], np.float32(0))
    own, others = (high - low).prod(), (other_high - other_low).prod(1)
    union = own + others - both
    valid = (both > 0) & (own > 0) & (others > 0) & (union > 0)
    return np.divide(both, union, out=np.zeros_like(both), where=valid)


def drawn(seed: int, dims: tuple[int, int, int], *, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Boxes and scores; coarse: of few different numbers, so that many are equal, or edges."""
    batch, classes, count = dims
    rng = np.random.default_rng(seed)
    if not coarse:
        boxes = rng.standard_normal((batch, count, 4))
        return boxes.astype(np.float32), rng.random(dims[:1] + dims[1:]).astype(np.float32) ** 3
    boxes = rng.integers(0, 5, (batch, count, 4)).astype(np.float32)
    scores = rng.integers(-2, 4, (batch, classes, count)).astype(np.float32) / 4
    zeros = rng.choice(np.float32([0.0, -0.0]), scores.shape)
    return boxes, np.where(scores == 0, zeros, scores)


Case = tuple[int, tuple[int, int, int], bool, int, float, float]
CASES = st.tuples(
    st.integers(0, 10**6),
    st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 40)),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 17, 1000]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([-1.0, 0.0, 0.25, 0.9]),
)


@pytest.mark.parametrize("center", [0, 1])
@settings(max_examples=12, deadline=None, derandomize=True,
          phases=(Phase.explicit, Phase.generate))  # fmt: skip
@given(CASES)
@example((1, (1, 1, 1), False, 1, 0.5, 0.0))
@example((2, (2, 17, 65), True, 1000, 0.25, -1.0))
@example((3, (1, 3, 0), False, 5, 0.5, 0.0))
@example((4, (1, 3, 300), False, 1000, 0.5, 0.0))
def test_kept_boxes(center: int, case: Case) -> None:
    seed, dims, coarse, most, overlap, least = case
    boxes, scores = drawn(seed, dims, coarse=coarse)
    given = {"x": boxes, "s": scores, "m": np.array(most, np.int64)}
    given |= {"i": np.float32([overlap]), "t": np.array(least, np.float32)}
    y, every = compiled(center).run(given)
    assert y.tolist() == plainly(boxes, scores, most, overlap, least, center)
    assert every.tolist() == plainly(boxes, scores, most, overlap, -np.inf, center)
    if most > 0 and 0 not in dims:
        theirs = session(model(center), exact=True).run(None, given)
        for a, b in zip((y, every), theirs, strict=True):
            np.testing.assert_array_equal(a, b)


FIXED = """g (float[2,40,4] x, float[2,3,40] s, int64 m)
          => (int64[k,3] y, int64[k,3] z, float[k,4] picked, float[6,4] first) {
    i = Constant <value_floats = [0.5]> ()
    t = Constant <value_floats = [0.25]> ()
    three = Constant <value_ints = [3]> ()
    y = NonMaxSuppression (x, s, m, i, t)
    z = Add (y, y)
    at = Constant <value_ints = [0, 2]> ()
    where = Gather <axis = 1> (y, at)
    picked = GatherND (x, where)
    few = NonMaxSuppression (x, s, three, i)
    best = Gather <axis = 1> (few, at)
    all = GatherND (x, best)
    from = Constant <value_ints = [0]> ()
    to = Constant <value_ints = [6]> ()
    first = Slice (all, from, to)
}"""


@pytest.mark.parametrize("most", [0, 1, 5, 100])
def test_readers_of_a_list_by_one_workgroup(most: int) -> None:
    """With fixed dims the list is the first rows of a tensor; ops that read them see no more."""
    boxes, scores = drawn(11, (2, 3, 40), coarse=False)
    given = {"x": boxes, "s": scores, "m": np.array(most, np.int64)}
    y, z, picked, first = mgx_mlir.compile(parsed_bytes(FIXED, opset=18), "cpu").run(given)
    want = np.array(plainly(boxes, scores, most, 0.5, 0.25, 0), np.int64).reshape(-1, 3)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(z, want * 2)
    np.testing.assert_array_equal(picked, boxes[want[:, 0], want[:, 2]])
    few = np.array(plainly(boxes, scores, 3, 0.5, -np.inf, 0), np.int64)[:6]
    np.testing.assert_array_equal(first, boxes[few[:, 0], few[:, 2]])


def test_no_order_of_numbers_that_are_none() -> None:
    """NaN comes last where no score is asked for, and never where one is; no box with NaN or
    infinite sides shares anything."""
    box = np.float32([[0, 0, 1, 1]] * 5 + [[0, np.nan, 1, 1], [-np.inf, 0, np.inf, 1]])[None]
    score = np.float32([[[np.nan, 0.5, -np.inf, np.inf, np.nan, 0.3, 0.2]]])
    given = {"x": box, "s": score, "m": np.array(9)}
    given |= {"i": np.float32([0.5]), "t": np.array(-9, np.float32)}
    y, every = compiled(0).run(given)
    assert y[:, 2].tolist() == [3, 5, 6] == every[:, 2].tolist()
    theirs = session(model(0), exact=True).run(None, given)[0]
    np.testing.assert_array_equal(y, theirs)
    given["x"] = box + np.float32(np.arange(7) * 9)[None, :, None]  # none shares a side
    y, every = compiled(0).run(given)
    assert y[:, 2].tolist() == [3, 1, 5, 6]
    assert every[:, 2].tolist() == [3, 1, 5, 6, 2, 0, 4]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats(dtype: type) -> None:
    """Scores of 16 bits are equal often; boxes are compared in f32."""
    programs = Programs()
    for seed, dims in ((5, (2, 3, 70)), (6, (1, 1, 300))):
        boxes, scores = (v.astype(dtype) for v in drawn(seed, dims, coarse=False))
        wide = [v.astype(np.float32) for v in (boxes, scores)]
        programs.add(
            lambda b, x, s: b.nonmaxsuppression(
                x, s, b.literal(20, INT64), b.literal(np.float32(0.5)), b.literal(np.float32(0.1))
            ),
            [boxes, scores],
            np.array(plainly(*wide, 20, 0.5, 0.1, 0)),
        )
    programs.compare(programs.lowered(STEP))

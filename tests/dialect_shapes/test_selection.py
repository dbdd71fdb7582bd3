"""nonmaxsuppression, unique and roialign against ONNX Runtime."""

import numpy as np
import pytest

from mgx_mlir.core.op import OPS
from tests.support.ops import evaluate
from tests.support.oracle import run_node

NMS = [pytest.param(*c, id=str(i)) for i, c in enumerate(OPS["nonmaxsuppression"].examples())]
UNIQUE = [pytest.param(*c, id=str(i)) for i, c in enumerate(OPS["unique"].examples())]
ROI = [pytest.param(*c, id=str(i)) for i, c in enumerate(OPS["roialign"].examples())]


@pytest.mark.parametrize(("operands", "at"), NMS)
def test_nonmaxsuppression(operands, at):
    got = evaluate("nonmaxsuppression", *operands, **at)
    if not operands[0].size:
        assert got.shape == (0, 3)
        return
    want = run_node(
        "NonMaxSuppression", *operands, center_point_box=int(at.get("center_point_box", False))
    )
    if at.get("padded"):
        assert got.shape == (operands[1].size, 3)
        assert not got[len(want) :].any()
        got = got[: len(want)]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", range(6))
def test_nonmaxsuppression_of_random_boxes(seed):
    rng = np.random.default_rng(seed)
    corners = rng.random((2, 40, 4)).astype(np.float32)
    scores = rng.random((2, 3, 40)).astype(np.float32).round(1)  # with equal scores
    given = [
        np.array([7], np.int64),
        np.array([rng.random()], np.float32),
        np.array([0.3], np.float32),
    ]
    np.testing.assert_array_equal(
        evaluate("nonmaxsuppression", corners, scores, *given),
        run_node("NonMaxSuppression", corners, scores, *given),
    )


@pytest.mark.parametrize(("operands", "at"), UNIQUE)
def test_unique(operands, at):
    (x,) = operands
    got = evaluate("unique", x, **at)
    if not x.ndim or not x.size:
        assert [a.size for a in got] == [x.size] * 4
        return
    attributes = {"sorted": int(at.get("sorted", True))}
    if "axis" in at:
        attributes["axis"] = at["axis"]
    kind = x.dtype if x.dtype in (np.float32, np.int64) else np.int64
    want = run_node("Unique", x.astype(kind), outputs=4, **attributes)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.astype(b.dtype), b)


@pytest.mark.parametrize(("operands", "at"), ROI)
def test_roialign(operands, at):
    got = evaluate("roialign", *operands, **at)
    if not operands[1].size:
        assert got.shape == (0, 3, 3, 2)
        return
    at = dict(at)
    at["mode"] = {"average": "avg", "max": "max"}[at.get("mode", "average")]
    at.setdefault("coordinate_transformation_mode", "half_pixel")
    want = run_node("RoiAlign", *operands, **at)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)  # f32 coordinates in both

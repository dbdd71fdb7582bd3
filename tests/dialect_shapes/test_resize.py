"""Resize against ONNX Runtime, over every mode and coordinate transformation."""

import numpy as np
import pytest

from mgx_mlir.core.op import OPS
from tests.support.ops import evaluate
from tests.support.oracle import run_node

CASES = [pytest.param(*case, id=str(i)) for i, case in enumerate(OPS["resize"].examples())]


@pytest.mark.parametrize(("operands", "at"), CASES)
def test_resize(operands, at):
    x = operands[0]
    got = evaluate("resize", *operands, **at)
    if not x.size or x.ndim < 2:
        assert got.shape == tuple(int(d * s) for d, s in zip(x.shape, at["scales"], strict=True))
        if x.ndim == 1:
            np.testing.assert_array_equal(got, x[[0, 2, 4]])  # floor of 0.5, 2.5, 4.5
        return
    at = dict(at)
    scales, sizes = at.pop("scales", None), at.pop("sizes", None)
    if len(operands) > 1:
        target = operands[1]
        scales, sizes = (target, None) if target.dtype.kind == "f" else (None, target)
    if sizes is not None:
        sizes = np.array([s if s > 0 else d for s, d in zip(sizes, x.shape, strict=True)], np.int64)
    else:
        scales = np.array(scales, np.float32)
    roi = at.pop("roi", None)
    at = {"nearest_mode": "floor"} | {k: int(v) if v is True else v for k, v in at.items()}
    want = run_node(
        "Resize",
        x,
        None if roi is None else np.array(roi, np.float32),
        scales,
        *(() if sizes is None else (sizes,)),
        opset=19,
        **at,
    )
    assert got.shape == want.shape
    tolerance = 1e-3 if x.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_integer_results_truncate_and_saturate():
    x = np.array([[0, 255], [255, 0]], np.uint8)
    got = evaluate("resize", x, sizes=[4, 4], mode="cubic")
    real = evaluate("resize", x.astype(np.float32), sizes=[4, 4], mode="cubic")
    assert real.min() < 0
    assert real.max() > 255
    np.testing.assert_array_equal(got, np.clip(np.trunc(real), 0, 255).astype(np.uint8))

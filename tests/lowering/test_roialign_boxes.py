"""RoiAlign on boxes of any size: walked where they meet the image, all samples counted."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir as migraphx
from tests.support.models import bytes_of, node
from tests.support.oracle import ort_session

BOXES = np.float32([
    [1, 1, 6, 5], [-40, -3, 90, 70], [3, 3, 3, 3], [5, 5, 2, 1], [100, 100, 300, 400],
    [-200, 2, -100, 300], [0, 0, 12, 200], [7.5, -90, 7.6, 90],
    [11, 8, -5, -4], [300, 9, 2, 1],
])  # fmt: skip
HUGE = np.float32([
    [0, 0, 1e30, 1e30], [-1e30, -1e30, 1e30, 1e30], [0, 0, np.inf, 2], [np.nan, 0, 4, 4],
    [1e30, 1e30, 2e30, 2e30], [-3e38, 0, 3e38, 4],
])  # fmt: skip


def model(mode: str, ratio: int, half: bool, count: int) -> bytes:
    align = node(
        "RoiAlign", "x r i", "y", mode=mode, sampling_ratio=ratio, output_height=3, output_width=2,
        coordinate_transformation_mode="half_pixel" if half else "output_half_pixel",
    )  # fmt: skip
    inputs = {"x": [2, 3, 9, 12], "r": [count, 4], "i": (TensorProto.INT64, [count])}
    return bytes_of([align], inputs, {"y": [count, 3, 3, 2]}, opset=16)


def run(data: bytes, target: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    p = migraphx.parse_onnx_buffer(data)
    p.compile(migraphx.get_target(target))
    return np.asarray(p.run(inputs)[0])


@pytest.mark.parametrize(
    ("mode", "ratio", "half"),
    [("avg", 0, True), ("avg", 70, False), ("max", 0, False), ("max", 1, True), ("avg", 3, True)],
)
def test_boxes_beyond_the_image(mode: str, ratio: int, half: bool) -> None:
    """Also boxes that end ahead of their begin, which with samples of a stated number have some."""
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 12)).astype(np.float32)
    inputs = {"x": x, "r": BOXES, "i": np.arange(len(BOXES)) % 2}
    data = model(mode, ratio, half, len(BOXES))
    expected = ort_session(data).run(None, inputs)[0]
    for target in ("ref", "cpu"):
        np.testing.assert_allclose(run(data, target, inputs), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_boxes_that_no_image_has(mode: str) -> None:
    x = np.ones((2, 3, 9, 12), np.float32)
    inputs = {"x": x, "r": HUGE, "i": np.zeros(len(HUGE), np.int64)}
    data = model(mode, 0, True, len(HUGE))
    for target in ("ref", "cpu"):
        p = migraphx.parse_onnx_buffer(data)
        p.compile(migraphx.get_target(target))
        start = time.perf_counter()
        found = np.asarray(p.run(inputs)[0])
        assert time.perf_counter() - start < 10
        assert np.all((found >= 0) & (found <= 1))

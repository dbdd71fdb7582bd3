"""Windows and blocks over dynamic heights and widths: padding and counts decided at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.support.compare import agrees
from tests.support.models import bytes_of

WEIGHTS = np.random.default_rng(1).standard_normal((3, 4, 3, 2)).astype(np.float32)

# name: the operator, its attributes, the heights and widths to run at
CASES: dict[str, tuple[str, dict[str, Any], list[tuple[int, int]]]] = {
    "depth_to_space": ("DepthToSpace", {"blocksize": 2}, [(1, 1), (3, 5), (8, 2)]),
    "depth_to_space_crd": ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, [(1, 1), (4, 7)]),
    "space_to_depth": ("SpaceToDepth", {"blocksize": 2}, [(2, 2), (4, 10), (8, 6)]),
    "max_pool_ceil": (
        "MaxPool",
        {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1, "pads": [1, 0, 1, 1]},
        [(3, 2), (5, 6), (6, 7), (7, 8), (10, 4)],
    ),
    "average_pool_ceil": (
        "AveragePool",
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        [(3, 3), (5, 6), (6, 7), (8, 8), (10, 5)],
    ),
    "max_pool_same_upper": (
        "MaxPool",
        {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        [(3, 2), (5, 6), (6, 7), (8, 9)],
    ),
    "average_pool_same_lower": (
        "AveragePool",
        {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "SAME_LOWER"},
        [(3, 4), (5, 6), (6, 7), (8, 9)],
    ),
    "conv_same_upper": (
        "Conv", {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, [(3, 2), (5, 6), (6, 7), (8, 9)]
    ),
    "conv_same_lower": (
        "Conv", {"strides": [2, 3], "auto_pad": "SAME_LOWER"}, [(3, 2), (5, 6), (6, 7), (8, 9)]
    ),
}  # fmt: skip


def model(kind: str, attributes: dict[str, Any]) -> bytes:
    weights = {"w": WEIGHTS} if kind == "Conv" else {}
    made = helper.make_node(kind, ["x", *weights], ["y"], **attributes)
    return bytes_of([made], {"x": ["n", 4, "h", "w0"]}, {"y": [None] * 4}, weights)


ON_CPU = ("depth_to_space", "max_pool_ceil", "average_pool_same_lower", "conv_same_upper")
RUNS = [
    *((name, "ref") for name in CASES),
    *(
        pytest.param(name, "cpu", marks=() if name in ON_CPU else pytest.mark.slow)
        for name in CASES
    ),
]


@pytest.mark.parametrize(("name", "target"), RUNS)
def test_at_run_time(name: str, target: str) -> None:
    kind, attributes, sizes = CASES[name]
    drawn = (np.random.default_rng(h).standard_normal((2, 4, h, w)) for h, w in sizes)
    agrees(model(kind, attributes), ({"x": x.astype(np.float32)} for x in drawn), target)

"""Transposed and 3-D convolutions and computed padding on processors, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.compare import agrees
from tests.support.models import model_of, node

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

# operator, input, weights, attributes
CASES: tuple[tuple[str, Sequence[int], Sequence[int], dict[str, Any]], ...] = (
    ("ConvTranspose", (1, 17, 8, 9), (17, 19, 4, 4), {"pads": [1] * 4, "strides": [2, 2]}),
    ("ConvTranspose", (2, 6, 7, 9), (6, 5, 3, 3),
     {"pads": [1] * 4, "strides": [2, 2], "output_padding": [1, 1], "group": 2}),
    ("ConvTranspose", (1, 5, 7, 9), (5, 7, 5, 2), {"pads": [0, 2, 3, 1], "strides": [3, 1]}),
    ("ConvTranspose", (1, 5, 19), (5, 7, 3), {"dilations": [2], "pads": [1, 1]}),
    ("ConvTranspose", (1, 5, 7, 8), (5, 3, 4, 3), {"strides": [3, 2], "auto_pad": "SAME_LOWER"}),
    ("Conv", (2, 3, 7, 9, 12), (17, 3, 2, 3, 3),
     {"pads": [1, 0, 1, 0, 1, 2], "strides": [2, 1, 2], "dilations": [2, 1, 1]}),
    ("Conv", (2, 3, 9, 12), (17, 3, 2, 3), {"auto_pad": "SAME_LOWER"}),
    ("Conv", (2, 6, 9, 12), (6, 1, 3, 3), {"auto_pad": "SAME_UPPER", "group": 6}),
)  # fmt: skip


def _model(opened: bool) -> onnx.ModelProto:
    """The cases beside each other, each with a bias and a relu."""
    numbers = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}
    inputs: dict[str, Any] = {}
    for i, (op, x, dims, attributes) in enumerate(CASES):
        w = numbers.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))
        outputs = dims[0] if op == "Conv" else dims[1] * attributes.get("group", 1)
        weights |= {f"w{i}": w, f"b{i}": numbers.standard_normal(outputs)}
        nodes += [node(op, f"x{i} w{i} b{i}", f"c{i}", **attributes),
                  node("Relu", f"c{i}", f"y{i}")]  # fmt: skip
        dynamic = [f"n{i}", x[1], *(f"d{i}{a}" for a in range(2, len(x)))]
        inputs[f"x{i}"] = dynamic if opened else list(x)
    results = {f"y{i}": [None] * len(x) for i, (_, x, _, _) in enumerate(CASES)}
    return model_of(nodes, inputs, results, weights, opset=18)


@pytest.mark.parametrize(
    "opened", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["fixed", "dynamic"]
)
def test_forms(opened: bool) -> None:
    numbers = np.random.default_rng(1)
    calls = [
        {
            f"x{i}": numbers.standard_normal(
                (x[0] + more, x[1], *(d + more for d in x[2:]))
            ).astype(np.float32)
            for i, (_, x, _, _) in enumerate(CASES)
        }
        for more in ((0, 1, 6) if opened else (0,))
    ]
    data = _model(opened).SerializeToString()
    assert not agrees(data, calls, scaled=True, threads=2).executable.fallbacks

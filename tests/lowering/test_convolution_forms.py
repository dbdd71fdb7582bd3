"""Transposed and 3-D convolutions and computed padding on processors, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.oracle import ort_session

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
    weights: list[onnx.TensorProto] = []
    for i, (op, _, dims, attributes) in enumerate(CASES):
        w = numbers.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))
        outputs = dims[0] if op == "Conv" else dims[1] * attributes.get("group", 1)
        weights += [
            numpy_helper.from_array(w.astype(np.float32), f"w{i}"),
            numpy_helper.from_array(numbers.standard_normal(outputs).astype(np.float32), f"b{i}"),
        ]
        nodes += [
            helper.make_node(op, [f"x{i}", f"w{i}", f"b{i}"], [f"c{i}"], **attributes),
            helper.make_node("Relu", [f"c{i}"], [f"y{i}"]),
        ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "forms",
        [
            value(
                f"x{i}",
                TensorProto.FLOAT,
                [f"n{i}", x[1], *(f"d{i}{a}" for a in range(2, len(x)))] if opened else x,
            )
            for i, (_, x, _, _) in enumerate(CASES)
        ],
        [value(f"y{i}", TensorProto.FLOAT, [None] * len(c[1])) for i, c in enumerate(CASES)],
        weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize(
    "opened", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["fixed", "dynamic"]
)
def test_forms(opened: bool) -> None:
    model = _model(opened).SerializeToString()
    program = mgx_mlir.compile(model, target="cpu", threads=2, cache=False)
    assert not program.executable.fallbacks
    session = ort_session(model)
    numbers = np.random.default_rng(1)
    for more in (0, 1, 6) if opened else (0,):
        inputs = {
            f"x{i}": numbers.standard_normal(
                (x[0] + more, x[1], *(d + more for d in x[2:]))
            ).astype(np.float32)
            for i, (_, x, _, _) in enumerate(CASES)
        }
        want: Sequence[Any] = session.run(None, inputs)
        for got, expected in zip(program.run(inputs), want, strict=True):
            scale = float(np.abs(expected).max())
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * scale)

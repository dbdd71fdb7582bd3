"""Nodes whose attributes are far out of what models have: right, or one error that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError, ModelError, RunError
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from tests.support.compare import agrees
from tests.support.models import bytes_of, node

FAR = 2**62
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
WEIGHTS = {"w": np.ones((1, 1, 3, 3), np.float32)}


def of_image(op: str, *, dims: Any = IMAGE, **attributes: Any) -> bytes:
    """A model of one node on an image, and on weights where it is a convolution."""
    weights = WEIGHTS if op.startswith("Conv") else {}
    names = "x w" if weights else "x"
    return bytes_of([node(op, names, "y", **attributes)], {"x": dims}, "y", weights, opset=20)


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool", "LpPool"])
def test_a_stride_beyond_every_extent_takes_one_window(op: str, target: str) -> None:
    window = {} if op == "Conv" else {"kernel_shape": [2, 2]}
    agrees(of_image(op, strides=[FAR, FAR], **window), [{"x": IMAGE}], target)


@pytest.mark.parametrize("pads", [[4] * 4, [0, 0, 7, 0], [FAR] * 4])
def test_a_transposed_convolution_has_no_negative_extent(pads: list[int]) -> None:
    with pytest.raises(ModelError, match=r"pads expected to cut at most 6 elements along dim 2"):
        parse_onnx_buffer(of_image("ConvTranspose", pads=pads))


def test_a_transposed_convolution_of_run_time_extents_has_none() -> None:
    data = of_image("ConvTranspose", dims=["n", 1, "h", "w"], pads=[2, 2, 2, 2])
    program = mgx_mlir.compile(data, "ref", cache=False)
    assert np.asarray(program.run({"x": IMAGE})[0]).shape == (1, 1, 2, 2)
    with pytest.raises(RunError, match=r"pads that cut no more than there is along dim 2"):
        program.run({"x": IMAGE[:, :, :1]})


@pytest.mark.parametrize("op", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("p", [0, -1])
def test_a_norm_has_an_order_of_1_or_more(op: str, p: int) -> None:
    window = {"kernel_shape": [2, 2]} if op == "LpPool" else {}
    for dims in (IMAGE, ["n", 1, "h", "w"]):
        with pytest.raises(MgxError, match=f"p expected at least 1, got {p}"):
            parse_onnx_buffer(of_image(op, dims=dims, p=p, **window))


def test_a_split_into_more_parts_than_a_node_may_have() -> None:
    for dims in (IMAGE, ["n", 1, "h", "w"]):
        with pytest.raises(MgxError, match=f"{FAR} parts, expected at most"):
            parse_onnx_buffer(of_image("Split", dims=dims, num_outputs=FAR))


def test_one_node_makes_a_value_once() -> None:
    data = bytes_of([node("Split", "x", "a a", num_outputs=2)], {"x": IMAGE}, "a", opset=20)
    with pytest.raises(ModelError, match=r"value 'a' is the output of node 'Split_0' twice"):
        parse_onnx_buffer(data)

"""Unsupported models: strings, refused and unknown operators, all reported at once."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.core.errors import CompileError, UnsupportedModel
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.frontends.onnx.options import OnnxOptions
from tests.support.models import bytes_of

DOMAIN = "org.example"


def model(nodes: list, inputs: dict[str, int], outputs: list[str]) -> bytes:
    made = [helper.make_node(*node, **more) for *node, more in nodes]
    ends = {n: (kind, [2, 3]) for n, kind in inputs.items()}, {o: [2, 3] for o in outputs}
    return bytes_of(made, *ends, opset=20, **{DOMAIN: 1})


def test_all_problems_at_once() -> None:
    """Problems of inputs and of nodes, also after an operator that cannot be read."""
    nodes = [
        ("StringConcat", ["s", "s"], ["c"], {}),
        ("Frobnicate", ["x"], ["f"], {"domain": DOMAIN}),
        ("Frobnicate", ["f"], ["g"], {"domain": DOMAIN}),
        ("ImageDecoder", ["f"], ["d"], {}),
        ("Softmax", ["x"], ["y"], {"axis": 7}),
    ]
    data = model(nodes, {"s": TensorProto.COMPLEX64, "x": TensorProto.FLOAT}, ["c", "g", "d", "y"])
    with pytest.raises(UnsupportedModel) as caught:
        parse_onnx_buffer(data)
    text = " ".join(str(caught.value).split())
    assert "4 nodes are not supported, of 3 kinds" in text
    assert "org.example::Frobnicate (opset 1) 2 nodes" in text
    assert "StringConcat (opset 20): strings" in text
    assert "decode it before the program" in text
    assert "input 's' has unsupported element type COMPLEX64" in text
    assert "axis 7 is out of range for rank 2" in text


def test_one_problem_is_the_error() -> None:
    data = model([("Identity", ["s"], ["c"], {})], {"s": TensorProto.COMPLEX64}, ["c"])
    with pytest.raises(UnsupportedModel, match=r"^[^\n]*input 's' has unsupported element type"):
        parse_onnx_buffer(data)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_unknown_operators_are_read_but_not_compiled(target: str) -> None:
    nodes = [
        ("Frobnicate", ["x"], ["f"], {"domain": DOMAIN}),
        ("ImageDecoder", ["b"], ["i"], {}),
        ("Add", ["f", "x"], ["y"], {}),
    ]
    data = model(nodes, {"x": TensorProto.FLOAT, "b": TensorProto.UINT8}, ["y", "i"])
    program = parse_onnx_buffer(data, OnnxOptions(skip_unknown_operators=True))
    with pytest.raises(
        CompileError, match=f"2 operations cannot be compiled for {target}"
    ) as caught:
        mgx_mlir.compile(program, target=target, cache=False)
    for name in ("Frobnicate", "ImageDecoder"):
        assert f"operator '{name}' has no importer" in str(caught.value)


def test_what_onnxruntime_wrote_for_one_processor_is_told() -> None:
    """A file of all its optimizations: weights in blocks, whose size no attribute tells."""
    nodes = [
        ("Conv", ["x", "x"], ["c"], {"domain": "com.microsoft.nchwc", "activation": "Relu"}),
        ("ReorderOutput", ["c"], ["y"], {"domain": "com.microsoft.nchwc", "channels": 3}),
    ]
    with pytest.raises(UnsupportedModel) as caught:
        parse_onnx_buffer(model(nodes, {"x": TensorProto.FLOAT}, ["y"]))
    text = " ".join(str(caught.value).split())
    assert "blocks for the CPU on which onnxruntime wrote the file" in text
    assert "save it with at most extended optimizations" in text

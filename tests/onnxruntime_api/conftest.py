"""Both packages under one name, and small models."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import mgx_mlir.onnxruntime

MODULES = {"theirs": onnxruntime, "ours": mgx_mlir.onnxruntime}


@pytest.fixture(params=list(MODULES))
def ort(request: pytest.FixtureRequest) -> ModuleType:
    """onnxruntime, and ours: what a test states is true of both."""
    return MODULES[request.param]


def tensor(name: str, kind: int, dims: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = 18,
    **fields: object,
) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=9, **fields)
    made.metadata_props.add(key="a", value="b")
    return made.SerializeToString()


def two_outputs() -> bytes:
    """y = x + w, z = y * k; the batch is dynamic."""
    return model(
        [
            helper.make_node("Add", ["x", "w"], ["y"]),
            helper.make_node("Mul", ["y", "k"], ["z"]),
        ],
        [tensor("x", TensorProto.FLOAT, ["batch", 3]), tensor("k", TensorProto.FLOAT, [3])],
        [tensor("y", TensorProto.FLOAT, ["batch", 3]), tensor("z", TensorProto.FLOAT, None)],
        [helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3])],
        producer_name="me",
        doc_string="what it is",
        domain="org.example",
        model_version=7,
    )


X = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.array([2, 3, 4], np.float32)
W = np.array([1, 2, 3], np.float32)

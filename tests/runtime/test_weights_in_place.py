"""Weights as the runtime reads them: what is computed of them when a model is compiled, too."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.compiler.compiled import IreeProgram


def test_weights_in_a_layout_of_their_own_are_not_copied_at_load() -> None:
    """Of a product, of a convolution, and one that constants give."""
    rng = np.random.default_rng(0)
    weights = {
        "dense": rng.standard_normal((96, 200)).astype(np.float32),
        "kernel": rng.standard_normal((24, 16, 3, 3)).astype(np.float32),
        "table": rng.standard_normal((200, 300)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "dense"], ["a"]),
        helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        helper.make_node("Exp", ["turned"], ["more"]),
        helper.make_node("Gather", ["more", "rows"], ["picked"]),
        helper.make_node("Add", ["a", "picked"], ["y"]),
        helper.make_node("Conv", ["image", "kernel"], ["z"]),
    ]
    given = {"x": ["b", 96], "image": [1, 16, 20, 20]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in given.items()]
    inputs.append(helper.make_tensor_value_info("rows", TensorProto.INT64, ["b"]))
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yz"]
    initial = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initial)
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    program = mgx_mlir.compile(model.SerializeToString(), "cpu", cache=False)
    assert isinstance(program, IreeProgram)
    assert sum(a.nbytes for a in program.params.values()) > 300_000
    assert program.load().copied_parameter_bytes == 0

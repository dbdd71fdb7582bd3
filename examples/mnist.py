"""Writes the model of MIGraphX's driver page, 784-128-10, as TensorFlow and as ONNX files.

    python examples/mnist.py [FOLDER]

makes simple_graph.pb (a frozen GraphDef, as TensorFlow freezes a Keras model of Flatten and two
Dense layers) and simple_graph.onnx, of the same weights: numbers drawn from a seed. TensorFlow is
not needed. Then, for example:

    mgx-driver read simple_graph.pb
    mgx-driver verify --cpu simple_graph.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mgx_mlir.frontends.tf import schema

_NUMBERS = {"float32": 1, "int32": 3}  # TensorFlow's numbers of element types


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    """`w0`, `b0`, `w1`, `b1`: f32, of two dense layers."""
    rng = np.random.default_rng(seed)
    shapes = {"w0": (784, 128), "b0": (128,), "w1": (128, 10), "b1": (10,)}
    return {k: (rng.standard_normal(s) * 0.1).astype(np.float32) for k, s in shapes.items()}


def onnx_model(values: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Reshape, MatMul, Add, Relu, MatMul, Add, Softmax: x [1, 28, 28] to y [1, 10]."""
    nodes = [
        helper.make_node("Reshape", ["x", "dims"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "w0"], ["m0"], name="fc0"),
        helper.make_node("Add", ["m0", "b0"], ["a0"], name="bias0"),
        helper.make_node("Relu", ["a0"], ["r0"], name="relu0"),
        helper.make_node("MatMul", ["r0", "w1"], ["m1"], name="fc1"),
        helper.make_node("Add", ["m1", "b1"], ["a1"], name="bias1"),
        helper.make_node("Softmax", ["a1"], ["y"], name="probs", axis=1),
    ]
    held = {**values, "dims": np.array([-1, 784])}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 28, 28])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(v, k) for k, v in held.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def tf_graph(values: dict[str, np.ndarray]) -> Any:
    """The frozen GraphDef: weights are Const nodes read through Identity, biases are BiasAdd."""
    graph = schema.Graph()

    def node(name: str, op: str, *inputs: str) -> Any:
        made = graph.node.add(name=name, op=op, input=inputs)
        made.attr["T"].type = _NUMBERS["float32"]
        return made

    def constant(name: str, array: np.ndarray) -> None:
        made = graph.node.add(name=name, op="Const")
        number = _NUMBERS[array.dtype.name]
        made.attr["dtype"].type = number
        tensor = made.attr["value"].tensor
        tensor.dtype, tensor.tensor_content = number, array.tobytes()
        for d in array.shape:
            tensor.tensor_shape.dim.add(size=d)

    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = _NUMBERS["float32"]
    for d in (1, 28, 28):
        x.attr["shape"].shape.dim.add(size=d)
    constant("flatten/shape", np.array([-1, 784], np.int32))
    node("flatten/Reshape", "Reshape", "x", "flatten/shape")
    last = "flatten/Reshape"
    for i, activation in enumerate(("Relu", "Softmax")):
        layer = f"dense_{i}"
        for key, name in ((f"w{i}", "kernel"), (f"b{i}", "bias")):
            constant(f"{layer}/{name}", values[key])
            node(f"{layer}/{name}/read", "Identity", f"{layer}/{name}")
        node(f"{layer}/MatMul", "MatMul", last, f"{layer}/kernel/read")
        node(f"{layer}/BiasAdd", "BiasAdd", f"{layer}/MatMul", f"{layer}/bias/read")
        last = f"{layer}/{activation}"
        node(last, activation, f"{layer}/BiasAdd")
    node("Identity", "Identity", last)
    return graph


def write(folder: Path) -> tuple[Path, Path]:
    """Write both files; their paths."""
    values = weights()
    tf_path, onnx_path = folder / "simple_graph.pb", folder / "simple_graph.onnx"
    tf_path.write_bytes(tf_graph(values).SerializeToString(deterministic=True))
    onnx_path.write_bytes(onnx_model(values).SerializeToString(deterministic=True))
    return tf_path, onnx_path


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    target.mkdir(parents=True, exist_ok=True)
    for path in write(target):
        print(path)

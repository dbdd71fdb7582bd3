"""Makes a copy of a model with the sign of one weight element flipped, which verify must notice.

    python benchmarks/flip.py model.onnx flipped.onnx
    mgx-driver verify --cpu model.onnx --against flipped.onnx     # has to end with 1

The weight is that of the first convolution or matmul, or of the chosen one; the element is its
largest. Deep inside a residual network one element may move the outputs less than rounding does
(GPT-2's query weights: 1e-6 of the largest), and then no comparison can notice it.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
THROUGH = ("Transpose", "Reshape", "Identity", "Cast", "Unsqueeze", "Squeeze")


@dataclass(frozen=True)
class Flip:
    """The change: the node, its weight, the element and its value before."""

    node: str
    weight: str
    index: tuple[int, ...]
    value: float

    def __str__(self) -> str:
        return (
            f"{self.weight}{list(self.index)} of '{self.node}': {self.value:g} -> {-self.value:g}"
        )


def weight_of(node: NodeProto, graph: GraphProto) -> TensorProto | None:
    """Return the initializer that a matmul or convolution multiplies by, through shape changes."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    made = {output: maker for maker in graph.node for output in maker.output}
    for name in (node.input[1], node.input[0]):
        while name in made and made[name].op_type in THROUGH:
            name = made[name].input[0]
        if name in tensors and len(tensors[name].dims) >= 2:
            return tensors[name]
    return None


def flip(path: Path, out: Path, product: int = 0) -> Flip:
    """Write the changed copy of `path` to `out`. ValueError if it has not so many products."""
    model = onnx.load(path)
    found = []
    for node in model.graph.node:
        if node.op_type in PRODUCTS:
            tensor = weight_of(node, model.graph)
            if tensor is not None:
                found.append((node, tensor))
    if product >= len(found):
        raise ValueError(f"{path} has {len(found)} convolutions and matmuls with stored weights")
    node, tensor = found[product]
    weight = numpy_helper.to_array(tensor).copy()
    index = np.unravel_index(np.abs(weight).argmax(), weight.shape)
    value = weight[index]
    weight[index] = -value
    tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))
    temporary = out.with_suffix(".tmp")
    onnx.save(model, temporary)
    os.replace(temporary, out)
    return Flip(node.name or node.op_type, tensor.name, tuple(map(int, index)), float(value))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--product", type=int, default=0, help="which of them, from 0")
    options = parser.parse_args(argv)
    print(flip(options.model, options.out, options.product))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

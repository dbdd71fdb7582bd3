"""Makes a copy of a model with one weight element of the other sign, to see that it is noticed.

    python benchmarks/flip.py model.onnx flipped.onnx
    mgx-driver verify --cpu model.onnx --against flipped.onnx     # has to end with 1

The weight is that of the convolution or matrix product in the middle of the graph, the element its
largest one.
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
    """What was changed: the node, its weight, the element and its value before."""

    node: str
    weight: str
    index: tuple[int, ...]
    value: float

    def __str__(self) -> str:
        return (
            f"{self.weight}{list(self.index)} of '{self.node}': {self.value:g} -> {-self.value:g}"
        )


def weight_of(node: NodeProto, graph: GraphProto) -> TensorProto | None:
    """The initializer that a product multiplies with, read through shape changes."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    made = {output: maker for maker in graph.node for output in maker.output}
    for name in (node.input[1], node.input[0]):
        while name in made and made[name].op_type in THROUGH:
            name = made[name].input[0]
        if name in tensors and len(tensors[name].dims) >= 2:
            return tensors[name]
    return None


def flip(path: Path, out: Path) -> Flip:
    """Write the changed copy of `path` to `out`. ValueError if the model multiplies no weight."""
    model = onnx.load(path)
    found = []
    for node in model.graph.node:
        if node.op_type in PRODUCTS:
            tensor = weight_of(node, model.graph)
            if tensor is not None:
                found.append((node, tensor))
    if not found:
        raise ValueError(f"{path} has no convolution or matrix product with a stored weight")
    node, tensor = found[len(found) // 2]
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
    options = parser.parse_args(argv)
    print(flip(options.model, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""A graph of drawn extents, some of which the run decides, and the graphs of branches in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper

from zoo.made import BOOL, FLOAT, INT64, Graph

ML = "ai.onnx.ml"


class Drawn(Graph):
    """A graph whose inputs have drawn extents, and the arrays of two calls."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sizes: dict[str, tuple[int, int]] = {}

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def extent(self, low: int, high: int, step: int = 1) -> int | str:
        """Draw an extent: a number, or the name of a dynamic one that differs in the calls."""
        n = int(self.rng.integers(low, high + 1)) * step
        if self.rng.random() < 0.4:
            return n
        name = f"d{len(self.sizes)}"
        self.sizes[name] = (n, int(self.rng.integers(low, high + 1)) * step)
        return name

    def given(self, *dims: int | str, kind: int = FLOAT) -> str:
        return self.input(f"x{len(self.inputs)}", dims, kind)

    def result(self, value: str, rank: int, kind: int = FLOAT) -> None:
        number = len(self.outputs)
        self.output(value, f"y{number}", [f"y{number}_{i}" for i in range(rank)], kind)

    def made(self, opset: int = 18) -> ModelProto:
        model = helper.make_model(
            helper.make_graph(self.nodes, "drawn", self.inputs, self.outputs, self.weights),
            opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(ML, 3)],
            ir_version=8,
        )
        onnx.checker.check_model(model)
        return model

    def arrays(self, call: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(call)
        found: dict[str, np.ndarray] = {}
        for value in self.inputs:
            kind = value.type.tensor_type
            dims = [self.sizes[d.dim_param][call] if d.dim_param else d.dim_value
                    for d in kind.shape.dim]  # fmt: skip
            if kind.elem_type == BOOL:
                found[value.name] = np.array(bool(call)).reshape(dims)
            elif kind.elem_type == INT64:
                found[value.name] = rng.integers(0, 5, dims)
            else:
                found[value.name] = rng.standard_normal(dims).astype(np.float32)
        return found

    def dims_of(self, x: str, *parts: int | tuple[int, int]) -> str:
        """Return dims as converters write them: parts of the shape of x, in i32, and numbers."""
        shape = self.op("Cast", self.op("Shape", x), to=TensorProto.INT32)
        rows = [
            self.op("Slice", shape, self.ints(p[0]), self.ints(p[1]), self.ints(0))
            if isinstance(p, tuple)
            else self.const([p], np.int32)
            for p in parts
        ]
        return self.op("Cast", self.op("Concat", *rows, axis=0), to=INT64)


def branch(g: Drawn, mark: int, *outputs: str) -> onnx.GraphProto:
    """Return the nodes since `mark` as a graph of their own."""
    nodes, names = cut(g, mark, f"{outputs[0]}_{len(g.weights)}")
    infos = [helper.make_tensor_value_info(names[o], FLOAT, None) for o in outputs]
    return helper.make_graph(nodes, "branch", [], infos)


def cut(g: Drawn, mark: int, key: str) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    """Take the nodes since `mark` away, with other names of what they give; return the names."""
    nodes, g.nodes[mark:] = g.nodes[mark:], []
    names = {o: f"{o}_of_{key}" for node in nodes for o in node.output}
    for node in nodes:
        for place in (node.input, node.output):
            place[:] = [names.get(v, v) for v in place]
    return nodes, names

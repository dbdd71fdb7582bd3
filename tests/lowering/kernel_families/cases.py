"""Cases of a kernel family, their drawn values, and models of many cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 23
# ones, what fills registers of 4, 8 and 16 lanes or two of them, and what is left beside them
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 47, 65)
Dim = int | str
Node = tuple[str, Sequence[str], Sequence[str], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """Nodes of one family with their inputs, as (dtype, dims).

    A dim that is a name is dynamic in a program of dynamic dims; `sizes` says what it is in each
    run of it, the first is also that of the program of fixed dims. special: whether NaN and
    infinities are put into its inputs. as_onnxruntime: whether they must give what they give there
    (docs/special-values.md). limit: of the error, in parts of the largest element. steps: by how
    much integers may differ. below: the inputs of integers are less than this. zeros: the share
    of zeros of either sign in inputs of floats, among which the least number is then.
    in_onnxruntime: whether it has kernels of these types and forms. rules: those that take its
    kernels with dynamic dims, where that is stated.
    """

    family: str
    nodes: Sequence[Node]
    inputs: Mapping[str, tuple[str, Sequence[Dim]]]
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    sizes: Sequence[Mapping[str, int]] = ({},)
    outputs: Sequence[str] = ("y",)
    special: bool = True
    as_onnxruntime: bool = True
    limit: float = 1e-5
    steps: int = 0
    below: int = 100
    zeros: float = 0.0
    in_onnxruntime: bool = True
    rules: Sequence[str] = ()

    def dims(self, name: str, turn: int) -> tuple[int, ...]:
        """Return the extents of an input in a run."""
        sizes = self.sizes[min(turn, len(self.sizes) - 1)]
        return tuple(sizes[d] if isinstance(d, str) else d for d in self.inputs[name][1])

    def arrays(
        self, rng: np.random.Generator, turn: int, *, special: bool
    ) -> dict[str, np.ndarray]:
        """Draw the inputs of a run."""
        found = {}
        for name, (dtype, _) in self.inputs.items():
            dims = self.dims(name, turn)
            if np.dtype(dtype).kind in "biu":
                found[name] = rng.integers(0, self.below, dims).astype(dtype)
                continue
            drawn = np.asarray(rng.standard_normal(dims)).astype(dtype)
            if self.zeros and drawn.size:
                zeros = rng.choice(np.float32([0.0, -0.0]), dims).astype(dtype)
                drawn = np.where(rng.random(dims) < self.zeros, zeros, drawn)
                drawn.flat[0] = np.ones(1, f"u{drawn.itemsize}").view(dtype)[0]
            if special and self.special and drawn.size:
                for value in (np.nan, np.inf, -np.inf):
                    drawn.flat[rng.integers(0, drawn.size)] = value
            found[name] = drawn
        return found


class Draws:
    """Draws the numbers of a case."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)

    def extent(self, most: int = 65, least: int = 1) -> int:
        """Draw an extent."""
        return self.random.choice([n for n in EXTENTS if least <= n <= most])

    def dims(self, rank: int, most: int = 2000, least: int = 1) -> list[int]:
        """Draw extents of some dims whose product is not above `most`."""
        found: list[int] = []
        for _ in range(rank):
            found.append(self.extent(max(least, most), least))
            most //= found[-1]
        self.random.shuffle(found)
        return found

    def pick(self, *choices: Any) -> Any:
        """Return one of some values."""
        return self.random.choice(choices)

    def weight(self, *dims: int, scale: float = 1.0) -> np.ndarray:
        """Draw weights."""
        return (self.rng.standard_normal(dims) * scale).astype(np.float32)

    def bytes(self, *dims: int, spread: int = 40) -> np.ndarray:
        """Draw weights of 8 bits."""
        drawn = self.rng.standard_normal(dims) * spread
        return np.clip(np.rint(drawn), -127, 127).astype(np.int8)


def merged(
    cases: Sequence[Case], *, is_dynamic: bool, keep: Callable[[Case], bool] = lambda _: True
) -> bytes:
    """Return one model of the cases to keep, whose names begin with a case's number."""
    nodes, inputs, outputs, weights = [], [], [], []
    for i, case in enumerate(cases):
        if not keep(case):
            continue

        def own(name: str, i: int = i) -> str:
            return f"c{i}_{name}" if name else ""

        for op, takes, gives, attributes in case.nodes:
            nodes.append(helper.make_node(op, [*map(own, takes)], [*map(own, gives)], **attributes))
        for name, (dtype, dims) in case.inputs.items():
            shape = [own(d) if isinstance(d, str) else d for d in dims]
            if not is_dynamic:
                shape = list(case.dims(name, 0))
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            inputs.append(helper.make_tensor_value_info(own(name), kind, shape))
        outputs += [onnx.ValueInfoProto(name=own(n)) for n in case.outputs]
        weights += [numpy_helper.from_array(np.asarray(w), own(n)) for n, w in case.weights.items()]
    graph = helper.make_graph(nodes, "families", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model)
    ranks = {o.name: o for o in inferred.graph.output}
    for output in model.graph.output:
        found = ranks[output.name]
        if found.type.WhichOneof("value") is None:  # onnx infers no type of some functions
            first = next(iter(cases[int(output.name[1:].split("_")[0])].inputs.values()))
            kind = onnx.TensorProto.FLOAT
            found = helper.make_tensor_value_info(output.name, kind, [None] * len(first[1]))
        output.CopyFrom(found)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def own_names(cases: Sequence[Case]) -> Iterator[tuple[int, Case, str]]:
    """Yield the number, the case and the name of each result of `merged`."""
    for i, case in enumerate(cases):
        for name in case.outputs:
            yield i, case, name

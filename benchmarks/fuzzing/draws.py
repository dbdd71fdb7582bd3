"""Growers of the single nodes that the tests draw: their arrays become values of the graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzzing.graph import Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows
from benchmarks.fuzzing.oracle import DOUBTFUL

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "frontends"))


class GraphDraws:
    """The tests' interface for drawn values, on a graph's generator."""

    def __new__(cls, g: Graph) -> Any:
        from contrib_cases import Draws

        made = Draws(0)
        made.np = g.rng
        return made


@grows(10, since=17)
def drawn_node(g: Graph) -> Any:
    """A node of onnx_draws, at the graph's opset, fed by values of the graph where they fit."""
    import onnx_draws

    draw = g.pick(*onnx_draws.DRAWS)
    case = draw(GraphDraws(g))
    if g.opset < case.opset or case.want is not None:
        raise Rejected("another opset")
    return placed(g, case)


def placed(g: Graph, case: Any) -> Any:
    reference = case.oracle == "onnx.reference"
    if reference and case.op == "ConvTranspose":
        raise Rejected("a result that onnxruntime cuts short; the tests judge it")
    given: list[Value | None] = []
    for i, array in enumerate(case.inputs):
        if array is None:
            given.append(None)
        elif i in case.constants:
            given.append(g.const(array))
        else:
            given.append(fed(g, array))
    return g.node(
        case.op, *given, outputs=case.outputs, domain=case.domain,
        reference=reference and case.op not in DOUBTFUL, **case.attributes,
    )  # fmt: skip


def fed(g: Graph, array: np.ndarray) -> Value:
    """A value of the array's type and dims: one of the graph, or the array."""
    same = [v for v in g.seen if v.static and v.dtype == array.dtype and v.dims[0] == array.shape]
    if same and array.dtype == np.float32 and g.coin(0.7):
        return g.pick(*same)
    n = array.size
    if array.dtype == np.float32 and n and g.coin(0.5):
        longer = [
            v for v in g.seen if v.static and v.dtype == array.dtype and v.arrays[0].size >= n
        ]
        if longer and g.opset >= 13:
            x = g.pick(*longer)
            flat = g.node("Reshape", x, g.const(np.array([-1])), exact=True)
            cut = g.node("Slice", flat, g.const(np.array([0])), g.const(np.array([n])), exact=True)
            return g.node("Reshape", cut, g.const(np.array(array.shape, np.int64)), exact=True)
    return g.operand(array)

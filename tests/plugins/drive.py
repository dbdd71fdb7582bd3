"""Run in an environment with the example plugin: a model with its operator, against numpy."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

import mgx_mlir


def model(dims: list[int | str], rolls: list[tuple[int, int]]) -> bytes:
    """A chain of org.example::Roll, one for each (axis, shift)."""
    nodes = [
        helper.make_node("Roll", [f"x{i}"], [f"x{i + 1}"], domain="org.example", axis=a, shift=s)
        for i, (a, s) in enumerate(rolls)
    ]
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n in ("x0", f"x{len(rolls)}")
    ]
    graph = helper.make_graph(nodes, "rolls", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("org.example", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def check(dims: list[int | str], shape: tuple[int, ...], rolls: list[tuple[int, int]]) -> bool:
    """Compile and run; whether the program came from the cache."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want = x
    for axis, shift in rolls:
        want = np.roll(want, shift, axis)
    program = mgx_mlir.compile(model(dims, rolls), target="cpu")
    [got] = program.run({"x0": x})
    np.testing.assert_array_equal(np.asarray(got), want)
    return bool(program.stats.cached)


if __name__ == "__main__":
    rolls = [(0, 2), (1, -13), (-1, 0), (1, 4)]
    check(["n", "m"], (3, 5), rolls)
    print(check([3, 5], (3, 5), rolls))

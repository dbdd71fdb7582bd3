"""Sizes that values decide: the host reads these values once, and computes with them itself."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir
from tests.support.compare import agrees
from tests.support.oracle import ort_session
from zoo.made import INT64, Graph

INT32 = TensorProto.INT32


def tiled(g: Graph) -> bytes:
    """Sums and limits of a list decide how often rows are repeated, cut and listed."""
    x, counts = g.input("x", ["n", 3]), g.input("counts", ["m"], INT64)
    total = g.op("ReduceSum", g.op("Cast", counts, to=INT32), g.ints(0), keepdims=1)
    wide = g.op("Cast", g.op("Concat", g.const([1], np.int32), total, axis=0), to=INT64)
    rows = g.op("Tile", x, g.op("Mul", wide, g.ints(2, 1)))
    whole = g.op("Sub", g.op("ReduceMax", counts, g.ints(0), keepdims=1), g.ints(1))
    cut = g.op("Slice", rows, whole, g.ints(1000), g.ints(0))
    g.output(cut, "cut", ["a", "b"])
    last = g.op("Squeeze", g.op("Cast", total, to=INT64), g.ints(0))
    steps = g.op("Range", g.const(0, np.int64), last, g.const(1, np.int64))
    g.output(g.op("Add", steps, g.op("Cast", total, to=INT64)), "steps", ["c"], INT64)
    flat = g.op("Reshape", rows, g.op("Concat", g.ints(-1), wide, axis=0))
    g.output(flat, "flat", ["d", "e", "f"])
    # the number that decides is a result, and is computed with, too
    g.output(g.op("Mul", g.op("Cast", total, to=TensorProto.FLOAT), g.const([0.5])), "half", [1])
    g.output(g.op("Add", total, g.const([1], np.int32)), "next", [1], INT32)
    return g.model().SerializeToString()


@pytest.fixture(scope="module")
def program() -> mgx_mlir.CompiledProgram:
    return mgx_mlir.compile(tiled(Graph(1)), "cpu")


@pytest.mark.parametrize("counts", [[1], [2, 1], [0, 3, 4], [1, 0], [7, -3, 1]])
def test_against_onnxruntime(program: mgx_mlir.CompiledProgram, counts: list[int]) -> None:
    session = ort_session(tiled(Graph(1)))
    for rows in (1, 4):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        given = {"x": x, "counts": np.array(counts, np.int64)}
        for got, want in zip(program.run(given), session.run(None, given), strict=True):
            np.testing.assert_array_equal(got, want)


def test_what_follows_is_no_kernel(program: mgx_mlir.CompiledProgram) -> None:
    """Two values are reduced, and one result is of a list's length; sizes follow on the host."""
    names = [k.name.removeprefix("cpu::") for k in program.kernels]
    assert [n for n in names if "reduce" not in n] == ["add"], names


def test_values_of_an_input() -> None:
    """An input of sizes itself: repeated by what it says, which is 0 or 1 as well."""
    g = Graph(2)
    x, dims = g.input("x", ["n", 1], INT32), g.input("dims", [2], INT64)
    g.output(g.op("Expand", x, g.op("Max", dims, g.ints(0, 1))), "y", ["a", "b"], INT32)
    g.output(
        g.op("Where", g.op("Greater", dims, g.ints(1, 1)), dims, g.ints(5, 6)), "z", [2], INT64
    )
    data = g.model().SerializeToString()
    session = ort_session(data)
    program = mgx_mlir.compile(data, "cpu")
    for rows, wanted in ((2, [2, 3]), (1, [4, 1]), (1, [0, 2]), (3, [1, 5])):
        given = {"x": np.arange(rows, dtype=np.int32)[:, None], "dims": np.array(wanted)}
        for got, want in zip(program.run(given), session.run(None, given), strict=True):
            np.testing.assert_array_equal(got, want)


def test_transposed_convolutions_of_computed_lengths() -> None:
    """Results are computed a stride at a time, as with static lengths."""
    g = Graph(3)
    x, ends = g.input("x", ["b", 8, "n"]), g.input("ends", ["k"], INT64)
    end = g.op("ReduceMax", ends, g.ints(0), keepdims=1)
    for i, (k, s, pads, dilation, group) in enumerate(
        [(16, 8, [4, 4], 1, 1), (5, 3, [0, 1], 1, 2), (3, 1, [1, 0], 2, 1), (2, 3, [0, 0], 1, 4)]
    ):
        y = g.op("Slice", x, g.ints(0), end, g.ints(2))
        y = g.op("ConvTranspose", y, g.weight(8, 2, k), g.vector(2 * group), kernel_shape=[k],
                 strides=[s], pads=pads, dilations=[dilation], group=group)  # fmt: skip
        g.output(g.op("Tanh", y), f"y{i}", [f"b{i}", 2 * group, f"n{i}"])
    calls = []
    for batch, length, wanted in ((1, 20, 13), (2, 9, 50), (1, 9, 1)):
        x_of = np.random.default_rng(length).standard_normal((batch, 8, length))
        calls.append({"x": x_of.astype(np.float32), "ends": np.array([0, wanted])})
    program = agrees(g.model().SerializeToString(), calls, rtol=0, atol=1e-6)
    assert sum("convolution" in k.name for k in program.kernels) == 4

"""Sizes that only the run knows: empty segments, a split's rest, lengths of the last axis."""

from __future__ import annotations

import numpy as np
import pytest
from tf_graphs import FLOAT, INT32, Graph

import mgx_mlir
from mgx_mlir.core.errors import RunError

UINT8 = 4


@pytest.fixture
def graph():
    return Graph()


def run(graph, target="ref", *, outputs=("y",), **inputs):
    program = graph.parse(output_names=list(outputs), batch_size=None)
    return mgx_mlir.compile(program, target, cache=False).run(inputs)


@pytest.mark.parametrize("name", ["Sum", "Mean", "Prod", "Max", "Min"])
@pytest.mark.parametrize("rows", [-1, 0])
def test_no_segments_give_no_rows(graph, name, rows):
    graph.placeholder("x", (rows, 2))
    graph.placeholder("ids", (rows,), INT32)
    graph.node("y", f"Segment{name}", "x", "ids")
    [found] = run(graph, x=np.zeros((0, 2), "f4"), ids=np.zeros(0, "i4"))
    assert found.shape == (0, 2)


def test_no_segments_on_the_cpu(graph):
    graph.placeholder("x", (-1, 2))
    graph.placeholder("ids", (-1,), INT32)
    graph.node("y", "SegmentMax", "x", "ids")
    [found] = run(graph, "cpu", x=np.zeros((0, 2), "f4"), ids=np.zeros(0, "i4"))
    assert found.shape == (0, 2)
    graph = Graph()
    graph.placeholder("x", (-1, 2))
    graph.placeholder("ids", (-1,), INT32)
    graph.node("y", "SegmentMax", "x", "ids")
    x = np.arange(6, dtype="f4").reshape(3, 2)
    [found] = run(graph, "cpu", x=x, ids=np.array([0, 0, 2], "i4"))
    np.testing.assert_array_equal(found, [[2, 3], [0, 0], [4, 5]])


def split(graph, rows):
    graph.placeholder("x", (rows,))
    graph.placeholder("sizes", (3,), INT32)
    graph.const("axis", np.int32(0))
    graph.node("y", "SplitV", "x", "sizes", "axis", num_split=3)


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("rows", [6, -1])
def test_a_run_time_split_takes_the_rest(graph, rows, target):
    split(graph, rows)
    x, sizes = np.arange(6, dtype="f4"), np.array([1, -1, 2], "i4")
    found = run(graph, target, outputs=("y:0", "y:1", "y:2"), x=x, sizes=sizes)
    for part, wanted in zip(found, np.split(x, [1, 4]), strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("sizes", [[-1, -1, 2], [-1, -1, 8], [-2, 2, 6], [-1, 3, 4]])
def test_a_run_time_split_that_has_no_rest(graph, sizes):
    split(graph, -1)
    with pytest.raises(RunError, match="split sizes"):
        run(graph, x=np.zeros(6, "f4"), sizes=np.array(sizes, "i4"))


def test_a_bitcast_takes_a_dynamic_last_axis(graph):
    graph.placeholder("x", (-1, -1), UINT8)
    graph.node("y", "Bitcast", "x").attr["type"].type = FLOAT
    wanted = np.array([1.5, -2, 3e30], "f4")
    [found] = run(graph, x=wanted.view("u1").reshape(3, 4))
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(RunError, match="extent 4 along dim 1"):
        run(graph, x=np.zeros((3, 2), "u1"))


def test_transforms_of_dynamic_dims(graph):
    graph.placeholder("x", (1, 2, 3, 1))
    graph.placeholder("t", (-1, -1))
    graph.const("size", np.array([2, 3], "i4"))
    graph.const("fill", np.float32(9))
    graph.node("y", "ImageProjectiveTransformV3", "x", "t", "size", "fill", interpolation="NEAREST")
    x = np.arange(6, dtype="f4").reshape(1, 2, 3, 1)
    [found] = run(graph, x=x, t=np.array([[1, 0, 1, 0, 1, 0, 0, 0]], "f4"))
    np.testing.assert_array_equal(found[0, :, :, 0], [[1, 2, 9], [4, 5, 9]])

"""Pointwise kernels and transposes as vector loops: any broadcast, tails, ones, dynamic dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mgx_mlir

N = (1, 2, 15, 16, 17, 33)  # around the lanes of processors


def _model(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Sequence[int | str]],
    results: Mapping[str, Sequence[int | str]], kind: int = TensorProto.FLOAT,
) -> bytes:  # fmt: skip
    def infos(given: Mapping[str, Sequence[int | str]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, kind, list(d)) for n, d in given.items()]

    graph = helper.make_graph(nodes, "g", infos(inputs), infos(results))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return model.SerializeToString()


@pytest.fixture(scope="module", params=[1, 2])
def threads(request: pytest.FixtureRequest) -> int:
    return request.param


def test_dynamic_broadcasts_and_transpose(threads: int) -> None:
    """One program for all sizes: rows, columns, a number, and heads that change places."""
    make = helper.make_node
    nodes = [
        make("Add", ["x", "row"], ["a"]),
        make("Mul", ["a", "column"], ["b"]),
        make("Sub", ["b", "one"], ["y"]),
        make("Transpose", ["x"], ["z"], perm=[1, 0, 2]),
    ]
    inputs = {"x": ["a", "b", "c"], "row": ["c"], "column": ["b", 1], "one": []}
    found = {"y": ["a", "b", "c"], "z": ["b", "a", "c"]}
    program = mgx_mlir.compile(_model(nodes, inputs, found), target="cpu", threads=threads)
    r = np.random.default_rng(1)
    for dims in [(2, 3, n) for n in N] + [(1, 1, 1), (7, 1, 40), (0, 2, 5), (40, 70, 64)]:
        x, row = r.standard_normal(dims, np.float32), r.standard_normal(dims[2:], np.float32)
        column, one = r.standard_normal((dims[1], 1), np.float32), np.float32(0.5)
        y, z = program.run({"x": x, "row": row, "column": column, "one": np.asarray(one)})
        want = (x.astype(np.float64) + row) * column - 0.5
        np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(z, x.transpose(1, 0, 2))


@pytest.mark.parametrize("dims", [(33,), (5, 33)])
def test_functions(dims: tuple[int, ...]) -> None:
    """exp and what is made of it, to the ends of f32."""
    make = helper.make_node
    names = ["Exp", "Sigmoid", "Tanh", "Relu"]
    nodes = [make(n, ["x"], [n.lower()]) for n in names]
    model = _model(nodes, {"x": list(dims)}, {n.lower(): list(dims) for n in names})
    program = mgx_mlir.compile(model, target="cpu", threads=1)
    x = np.random.default_rng(2).uniform(-100, 100, dims).astype(np.float32)
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, 88.72283, 88.72284, -87.3, -104.0, 88.3, 1e-30]
    x.flat[: len(ends)] = ends
    found = dict(zip(program.output_names, program.run({"x": x}), strict=True))
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        exp = np.exp(wide)
        want = {
            "exp": np.where(exp > np.finfo(np.float32).max, np.inf, exp),
            "sigmoid": 1 / (1 + np.exp(-wide)),
            "tanh": np.tanh(wide),
            "relu": np.where(wide < 0, 0, wide),
        }
    for name, value in want.items():
        np.testing.assert_allclose(found[name], value, rtol=5e-7, atol=2e-7, err_msg=name)


def test_integers_divided_behind_the_end() -> None:
    """Lanes that no element stands in are divided as well, and must not trap."""
    node = helper.make_node("Div", ["x", "d"], ["y"])
    model = _model([node], {"x": ["n"], "d": ["n"]}, {"y": ["n"]}, TensorProto.INT32)
    program = mgx_mlir.compile(model, target="cpu", threads=1)
    for n in N:
        x, d = np.arange(-5, n - 5, dtype=np.int32), np.arange(1, n + 1, dtype=np.int32)
        want = np.trunc(x / d).astype(np.int32)
        np.testing.assert_array_equal(program.run({"x": x, "d": d})[0], want)


def test_doubles_in_16_bits() -> None:
    """Vectors round f32 alone to 16 bits: such a kernel is lowered in another way."""
    casts = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)]
    model = onnx.load_from_string(_model(casts, {"x": [3, 17]}, {"y": [3, 17]}, TensorProto.DOUBLE))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    program = mgx_mlir.compile(model.SerializeToString(), target="cpu", cache=False)
    x = np.random.default_rng(3).standard_normal((3, 17)) * 100
    np.testing.assert_array_equal(program.run({"x": x})[0], x.astype(np.float16))


SHORT = ((4, 0, 2, 1, 3), (0, 2, 4, 3, 1), (1, 4, 0, 3, 2), (4, 3, 2, 1, 0), (0, 1, 4, 2, 3))


@pytest.mark.parametrize("opened", [False, True], ids=["fixed", "dynamic"])
def test_transposes_to_a_short_last_dim(opened: bool) -> None:
    """Rows change places before the last dim is turned: phases of pixels, as ConvTranspose has."""
    dims = (5, 7, 2, 3, 20)
    names: tuple[int | str, ...] = ("a", "b", 2, 3, "c") if opened else dims
    nodes = [
        helper.make_node("Transpose", ["x"], [f"y{i}"], perm=list(p)) for i, p in enumerate(SHORT)
    ]
    found = {f"y{i}": [names[j] for j in p] for i, p in enumerate(SHORT)}
    program = mgx_mlir.compile(_model(nodes, {"x": names}, found), target="cpu", cache=False)
    r = np.random.default_rng(0)
    for d in [dims, (1, 1, 2, 3, 1), (3, 33, 2, 3, 17), (2, 0, 2, 3, 4)] if opened else [dims]:
        x = r.standard_normal(d, np.float32)
        for y, p in zip(program.run({"x": x}), SHORT, strict=True):
            np.testing.assert_array_equal(y, x.transpose(p))


TURNED = (
    ((9, 8), (1, 0)),
    ((130, 70), (1, 0)),
    ((3, 17, 20), (0, 2, 1)),
    ((20, 3, 17), (2, 1, 0)),
    ((17, 3, 4, 33), (3, 1, 2, 0)),
    ((2, 64, 5, 13), (0, 2, 3, 1)),
    ((7, 300), (1, 0)),
    ((1, 8, 1, 8), (3, 2, 1, 0)),
    ((3, 9, 2, 10), (3, 2, 1, 0)),
)


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT, onnx.TensorProto.INT32])
def test_transposes_of_squares(kind: int, threads: int) -> None:
    """Rows become lanes: extents that are no multiple of the lanes, of a tile, or less than one."""
    nodes = [
        helper.make_node("Transpose", [f"x{i}"], [f"y{i}"], perm=list(p))
        for i, (_, p) in enumerate(TURNED)
    ]
    inputs = {f"x{i}": d for i, (d, _) in enumerate(TURNED)}
    found = {f"y{i}": [d[j] for j in p] for i, (d, p) in enumerate(TURNED)}
    program = mgx_mlir.compile(
        _model(nodes, inputs, found, kind), target="cpu", threads=threads, cache=False
    )
    r = np.random.default_rng(2)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    given = {n: r.integers(-(2**30), 2**30, d).astype(dtype) for n, d in inputs.items()}
    for y, (n, x), (_, p) in zip(program.run(given), given.items(), TURNED, strict=True):
        np.testing.assert_array_equal(y, x.transpose(p), n)


def test_bounds_that_are_constants() -> None:
    """A NaN stays, on either side; what is at the bound is the bound, 0 for -0."""
    make = helper.make_node
    one = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 6, 7, 5.9, -1, 3e38, 1e-30], np.float32)
    x = np.tile(one, 3)
    nodes = [
        make("Constant", [], ["low"], value_float=0.0),
        make("Constant", [], ["high"], value_float=6.0),
        make("Relu", ["x"], ["a"]),
        make("Clip", ["x", "low", "high"], ["b"]),
        make("Max", ["x", "high"], ["c"]),
        make("Min", ["high", "x"], ["d"]),
    ]
    dims = [len(x)]
    model = _model(nodes, {"x": dims}, dict.fromkeys("abcd", dims))
    a, b, c, d = mgx_mlir.compile(model, target="cpu", cache=False).run({"x": x})
    np.testing.assert_array_equal(a, np.maximum(x, 0))
    np.testing.assert_array_equal(b, np.clip(x, 0, 6))
    np.testing.assert_array_equal(c, np.maximum(x, 6))
    np.testing.assert_array_equal(d, np.minimum(x, 6))
    assert not np.signbit(a[x == 0]).any()

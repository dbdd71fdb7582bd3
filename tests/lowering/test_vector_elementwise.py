"""Pointwise kernels as vector loops: functions to the ends of f32, tails, what surrounds them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from tests.support.models import bytes_of, parsed

N = (1, 2, 15, 16, 17, 33)  # around the lanes of processors


def _model(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Sequence[int | str]],
    results: Mapping[str, Sequence[int | str]], kind: int = TensorProto.FLOAT,
) -> bytes:  # fmt: skip
    ends = [{n: (kind, list(d)) for n, d in given.items()} for given in (inputs, results)]
    return bytes_of(nodes, *ends, opset=20)


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


def test_bools_of_dynamic_dims() -> None:
    """Bools are results, operands along the lanes, and one for all lanes of a row."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[a,b] x, float[a,b] z, bool[a,b] m, bool[a,1] r)
          => (bool[a,b] less, float[a,b] large, float[a,b] y) {
          less = Less (x, z) either = Or (less, m) large = Max (x, z)
          wide = Where (either, large, x) row = Where (r, wide, z) y = Neg (row)
        }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
    rng = np.random.default_rng(4)
    for a, b in itertools.product((1, 3), (0, *N)):
        x, z = (rng.integers(-2, 3, (a, b)).astype(np.float32) for _ in "xz")
        m, r = (rng.integers(0, 2, (a, n)).astype(bool) for n in (b, 1))
        x[..., ::7] = np.nan
        less, large, y = program.run({"x": x, "z": z, "m": m, "r": r})
        np.testing.assert_array_equal(less, x < z)
        np.testing.assert_array_equal(large, np.maximum(x, z))
        np.testing.assert_array_equal(y, -np.where(r, np.where((x < z) | m, large, x), z))


@pytest.mark.parametrize("cast", ["", "int16"])  # vectors, and loops of the compiler
def test_many_tensors_of_the_same_dynamic_dims(cast: str) -> None:
    """Equal extents are passed to a kernel once: 16 operands and six results are one kernel."""
    ways = list(itertools.product(range(4), (0, 1), (0, 1)))
    to = TensorProto.INT16 if cast else TensorProto.FLOAT
    parts = [
        f"c{i} = CumSum <exclusive = {less}, reverse = {back}> (x, a{axis}) "
        f"k{i} = Cast <to = {to}> (c{i})"
        for i, (axis, less, back) in enumerate(ways)
    ]
    parts += [f"s{i} = Add ({f's{i - 1}' if i > 1 else 'k0'}, k{i})" for i in range(1, len(ways))]
    kept = range(len(ways) - 6, len(ways))
    results = ", ".join(f"{cast or 'float'}[a,b,c,d] s{i}" for i in kept)
    axes = ", ".join(f"int64 a{i} = {{{i}}}" for i in range(4))
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[a,b,c,d] x) => ({results}) <{axes}> {{ {" ".join(parts)} }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
    assert len(program.kernels) == 1
    for dims in ((2, 3, 4, 5), (1, 1, 7, 3)):
        x = np.random.default_rng(5).integers(-2, 3, dims).astype(np.float32)
        total, sums = np.float32(0), list[np.ndarray]()
        for axis, less, back in ways:
            y = np.flip(x, axis) if back else x
            y = np.cumsum(y, axis) - less * y
            total = total + (np.flip(y, axis) if back else y)
            sums.append(total)
        for found, i in zip(program.run({"x": x}), kept, strict=True):
            np.testing.assert_array_equal(found, sums[i])


def test_arguments_bring_extents_of_their_own() -> None:
    """A kernel of many arguments is cut, as IREE passes 64 constants at most."""
    count = 20
    names = ", ".join(f"int16[a,b,c,d] x{i}" for i in range(count))
    chain = [f"s{i} = Add ({f's{i - 1}' if i > 1 else 'x0'}, x{i})" for i in range(1, count)]
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g ({names}) => (int16[a,b,c,d] s{count - 1}) {{ {" ".join(chain)} }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
    given = {f"x{i}": np.full((2, 1, 3, 2), i, np.int16) for i in range(count)}
    np.testing.assert_array_equal(program.run(given)[0], sum(given.values()))


def test_doubles_in_16_bits() -> None:
    """Vectors round f32 alone to 16 bits: such a kernel is lowered in another way."""
    casts = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)]
    model = onnx.load_from_string(_model(casts, {"x": [3, 17]}, {"y": [3, 17]}, TensorProto.DOUBLE))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    program = mgx_mlir.compile(model.SerializeToString(), target="cpu", cache=False)
    x = np.random.default_rng(3).standard_normal((3, 17)) * 100
    np.testing.assert_array_equal(program.run({"x": x})[0], x.astype(np.float16))


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


def test_what_surrounds_a_turned_tensor() -> None:
    """Values of other kernels are turned, NaN and infinities too, and read by further ones."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[a,b,c] x, float[c] w) => (float[a,c,b] y, float[a,b,c] z) <float two = {2.0}> {
          s = Mul(x, two) y = Transpose <perm = [0, 2, 1]> (s)
          n = Exp(y) t = Transpose <perm = [0, 2, 1]> (n) z = Add(t, w)
        }"""
    program = mgx_mlir.compile(
        onnx.parser.parse_model(text).SerializeToString(), "cpu", cache=False
    )
    rng = np.random.default_rng(0)
    for a, b, c in itertools.product((1, 3), (1, 9, 40), (2, 17)):
        x = rng.standard_normal((a, b, c)).astype(np.float32)
        x.flat[:2] = np.nan, np.inf
        w = rng.standard_normal(c).astype(np.float32)
        y, z = program.run({"x": x, "w": w})
        np.testing.assert_array_equal(y, (2 * x).transpose(0, 2, 1))
        np.testing.assert_allclose(z, np.exp(2 * x.astype(np.float64)) + w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dims", "order"),
    [
        ((4096, 64), (1, 0)),
        ((64, 4096), (1, 0)),
        ((512, 512), (1, 0)),
        ((3136, 96), (1, 0)),
        ((2048, 49), (1, 0)),
        ((97, 133), (1, 0)),
        ((3, 520, 65), (0, 2, 1)),
        ((16, 3, 40), (2, 1, 0)),
        ((4, 8, 40, 24), (3, 2, 0, 1)),
        ((2, 4, 33, 64), (3, 2, 0, 1)),
        ((2, 7, 7, 136), (0, 3, 1, 2)),
    ],
)
@pytest.mark.parametrize("kind", ["float", "float16", "int8"])
def test_transposes_in_even_tiles(
    dims: tuple[int, ...], order: tuple[int, ...], kind: str
) -> None:  # fmt: skip
    """Tiles and squares that end with a row, or overlap those before; both orders of squares."""
    rng, types = np.random.default_rng(0), {"float": np.float32}
    x = rng.integers(-100, 100, dims).astype(types.get(kind, kind))
    model = parsed(f"""({kind}{list(dims)} x) => ({kind}[] y)
        {{ y = Transpose <perm = {list(order)}> (x) }}""")
    [y] = mgx_mlir.compile(model, "cpu").run({"x": x})
    np.testing.assert_array_equal(y, x.transpose(order))

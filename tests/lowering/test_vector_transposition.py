"""Transposes of dynamic dims: two blocks of dims change places, in squares that registers hold."""

from __future__ import annotations

import itertools

import numpy as np
import onnx.helper
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES = {
    "float": np.float32, "int32": np.int32, "float16": np.float16, "int64": np.int64,
    "uint8": np.uint8, "int8": np.int8, "uint16": np.uint16, "double": np.float64,
}  # fmt: skip
# (type, order of the dims); those that change places are one dim, or several
TURNED = [
    ("float", (1, 0)),
    ("float", (0, 2, 3, 1)),
    ("float", (0, 3, 1, 2)),
    ("int32", (0, 2, 1)),
    ("int32", (2, 0, 1)),
    ("float", (0, 1, 3, 2)),
    ("uint8", (0, 2, 3, 1)),
    ("int8", (1, 0)),
    ("float16", (0, 2, 1)),
    ("uint16", (0, 3, 1, 2)),
    ("int64", (1, 0)),
    ("double", (0, 2, 1)),
]
# other orders, which are not turned in registers
OTHERS = [
    ("float", (2, 1, 0)),
    ("float", (0, 2, 1, 3)),
    ("float", (3, 2, 0, 1)),
]
# the extents of four dims, of which a case takes the first ones
SIZES = [
    (1, 1, 1, 1),
    (8, 8, 8, 8),
    (2, 7, 9, 3),
    (17, 16, 15, 2),
    (3, 33, 65, 1),
    (1, 5, 259, 18),
    (300, 21, 2, 5),
    (2, 0, 3, 4),
]


def _program(cases: list[tuple[str, tuple[int, ...]]], **options: object) -> mgx_mlir.IreeProgram:
    inputs, outputs, nodes = [], [], []
    for i, (kind, order) in enumerate(cases):
        dims = [f"d{i}{axis}" for axis in range(len(order))]
        inputs.append(f"{kind}[{','.join(dims)}] x{i}")
        outputs.append(f"{kind}[{','.join(dims[axis] for axis in order)}] y{i}")
        nodes.append(f"y{i} = Transpose <perm = {list(order)}> (x{i})")
    text = f"g ({', '.join(inputs)}) => ({', '.join(outputs)}) {{ {' '.join(nodes)} }}"
    opsets = [onnx.helper.make_opsetid("", 18)]
    graph = onnx.parser.parse_graph(text)
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return mgx_mlir.compile(model.SerializeToString(), "cpu", cache=False, **options)


@pytest.mark.parametrize("threads", [1, 3])
def test_turned(threads: int) -> None:
    cases = [*TURNED, *OTHERS] if threads == 1 else TURNED[:3]
    program = _program(cases, threads=threads)
    assert not program.executable.fallbacks
    for sizes in SIZES:
        given = {
            f"x{i}": np.arange(np.prod(sizes[: len(order)])).reshape(sizes[: len(order)])
            .astype(TYPES[kind])
            for i, (kind, order) in enumerate(cases)
        }  # fmt: skip
        for (_, order), x, y in zip(cases, given.values(), program.run(given), strict=True):
            np.testing.assert_array_equal(y, x.transpose(order))


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


# (type, dims, order): squares of each element size and their tails, short last dims with those
# ahead of them, more dims than a grid has, and what is left to the compiler
FIXED = [
    ("float", (19, 11), (1, 0)),
    ("uint8", (1, 37, 5, 7), (0, 2, 3, 1)),
    ("int8", (33, 18), (1, 0)),
    ("float16", (2, 9, 23), (0, 2, 1)),
    ("int32", (3, 5, 2, 2, 9), (4, 0, 2, 1, 3)),
    ("float", (3, 4, 2, 2, 17), (4, 0, 2, 1, 3)),
    ("float", (2, 3, 5, 4, 24), (0, 4, 2, 1, 3)),
    ("uint8", (4, 8, 4, 2, 21), (4, 0, 2, 1, 3)),
    ("float", (6, 3, 9), (2, 0, 1)),
    ("int64", (9, 10), (1, 0)),
    ("uint8", (3, 15), (1, 0)),
    ("float", (1, 1, 1), (2, 1, 0)),
]


@pytest.mark.parametrize("threads", [1, 3])
def test_turned_with_known_extents(threads: int) -> None:
    inputs, outputs, nodes = [], [], []
    for i, (kind, dims, order) in enumerate(FIXED):
        inputs.append(f"{kind}[{','.join(map(str, dims))}] x{i}")
        outputs.append(f"{kind}[{','.join(str(dims[axis]) for axis in order)}] y{i}")
        nodes.append(f"y{i} = Transpose <perm = {list(order)}> (x{i})")
    text = f"g ({', '.join(inputs)}) => ({', '.join(outputs)}) {{ {' '.join(nodes)} }}"
    graph = onnx.parser.parse_graph(text)
    opsets = [onnx.helper.make_opsetid("", 18)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    program = mgx_mlir.compile(model.SerializeToString(), "cpu", cache=False, threads=threads)
    rng = np.random.default_rng(threads)
    given = {
        f"x{i}": rng.integers(0, 100, dims).astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
        for i, ((_, dims, _), dtype) in enumerate(
            zip(FIXED, (v.type.tensor_type.elem_type for v in graph.input), strict=True)
        )
    }
    for (_, _, order), x, y in zip(FIXED, given.values(), program.run(given), strict=True):
        np.testing.assert_array_equal(y, x.transpose(order))

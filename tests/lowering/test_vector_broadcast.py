"""Broadcasts whose extents only the run knows: every combination of 1 and the result's extent."""

from __future__ import annotations

import itertools

import numpy as np
import onnx.helper
import onnx.parser
import onnx.reference
import pytest

import mgx_mlir
from mgx_mlir.core.errors import RunError
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import parsed

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
TYPES = {"float": np.float32, "float16": np.float16, "int64": np.int64}


@pytest.mark.parametrize("kind", TYPES)
def test_every_operand_may_be_one(kind: str) -> None:
    text = f"""{HEAD} g ({kind}[a,b,c] x, {kind}[d,e,f] y, {kind}[g,h] w)
        => ({kind}[n,m,k] z, {kind}[o,p,q] v) {{ z = Mul(x,y) v = Add(y,w) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", cache=False)
    assert not program.executable.fallbacks
    rng = np.random.default_rng(0)

    def drawn(*dims: int) -> np.ndarray:
        return (9 * rng.standard_normal(dims)).astype(TYPES[kind])

    def check(*arrays: np.ndarray) -> None:
        x, y, w = arrays
        for got, want in zip(program.run({"x": x, "y": y, "w": w}), (x * y, y + w), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=2e-3)

    extents = [(1, 3), (1, 2), (1, 37)]
    for dims in itertools.product(*extents, *extents):
        for last in ((1, 1), (2, 37), (1, 37), (2, 1)):
            check(drawn(*dims[:3]), drawn(*dims[3:]), drawn(*last))
    check(drawn(0, 2, 3), drawn(1, 2, 3), drawn(2, 3))
    check(drawn(3, 1, 1), drawn(3, 1, 0), drawn(1, 1))
    for dims in (((3, 2, 3), (2, 2, 3), (2, 3)), ((3, 2, 3), (3, 2, 3), (2, 4))):
        with pytest.raises(RunError, match="expected"):
            program.run(dict(zip("xyw", (drawn(*d) for d in dims), strict=True)))


@pytest.mark.parametrize("dims", ["a,0,b", "0,a,b", "a,b,0", "0,1,a"])
def test_a_known_extent_of_0(dims: str) -> None:
    text = f"{HEAD} g (float[{dims}] x, float[c,d,e] y) => (float[n,m,k] z) {{ z = Add(x,y) }}"
    model = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", cache=False)
    for a, b in ((1, 1), (1, 3), (2, 1), (2, 3)):
        own = tuple(int(d) if d.isdigit() else {"a": a, "b": b}[d] for d in dims.split(","))
        x = np.zeros(own, np.float32)
        for other in ((1, 1, 1), tuple(2 if d == 1 else d for d in own), own):
            y = np.zeros(other, np.float32)
            [z] = program.run({"x": x, "y": y})
            assert z.shape == (x + y).shape


def test_more_rows_than_a_work_group_has() -> None:
    text = f"{HEAD} g (float[a,b] x, float[c,d] y) => (float[n,m] z) {{ z = Add(x,y) }}"
    model = onnx.parser.parse_model(text).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", cache=False, threads=2)
    rng = np.random.default_rng(0)
    for a, b, c, d in ((7001, 3, 1, 3), (1, 70001, 3, 1), (700, 130, 700, 1), (300, 301, 300, 301)):
        x, y = (rng.standard_normal(n).astype(np.float32) for n in ((a, b), (c, d)))
        np.testing.assert_array_equal(program.run({"x": x, "y": y})[0], x + y)


NAMED = {
    "a row": """g (float[a,b] x) => (float[n,8] z) <float[8] r = {0, 1, 2, 3, 4, 5, 6, 7}>
        { z = Add(x,r) }""",
    "two inputs": "g (float[a,b] x, float[c,d] y) => (float[n,m] z) { z = Add(x,y) }",
    "sums of sums": """g (float[a,b] x, float[c,d] y) => (float[n,m] z)
        { s = Add(x,y) t = Mul(s,y) u = Sub(t,x) z = Softmax(u) }""",
    "a choice": """g (bool[a,b] c, float[d,e] x, float[f] y) => (float[n,m] z)
        { z = Where(c,x,y) }""",
}


@pytest.mark.parametrize("name", NAMED)
def test_dynamic_dims_keep_their_names(name: str) -> None:
    """Dynamic dims that may be 1 broadcast to one extent for all passes."""
    model = parsed(NAMED[name])
    program = mgx_mlir.compile(model, "cpu", cache=False)
    assert program.stats.unnamed_dynamic_dims is None
    assert len(program.kernels) == 1
    oracle = onnx.reference.ReferenceEvaluator(model)
    rng = np.random.default_rng(0)
    for rows, columns in itertools.product(itertools.product((1, 3), repeat=2), repeat=2):
        wide = itertools.cycle((8, 1)) if max(columns) == 3 else itertools.repeat(8)
        arrays = {}
        for i, v in enumerate(model.graph.input):
            dims = (rows[i % 2], next(wide))[-len(v.type.tensor_type.shape.dim) :]
            drawn = rng.standard_normal(dims).astype(np.float32)
            arrays[v.name] = drawn > 0 if v.name == "c" else drawn
        got, want = program.run(arrays)[0], oracle.run(None, arrays)[0]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)

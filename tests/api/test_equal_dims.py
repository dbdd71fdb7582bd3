"""Dims with names of their own that operators broadcast together: a function for equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.compiler.equal_dims import FUNCTION
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.programs.signature import Signature, Variant
from tests.support.compare import compare
from tests.support.oracle import ort_session

HEAD = '<ir_version: 8, opset_import: ["": 18]>'
SUM = f"{HEAD} g (float[a,b] x, float[c,d] z) => (float[e,f] y) {{ s = Add (x, z) y = Exp (s) }}"
SCALED = f"""{HEAD} g (float[n,c] x) => (float[m,d] y) <float[3] w = {{1.0, 2.0, 4.0}}> {{
    s = ReduceMax <keepdims = 1> (x, axes) d = Sub (x, s) y = Mul (d, w)
}}"""
CHAIN = f"""{HEAD} g (float[a,b,i,j] q, float[c,d,k,l] k, float[e,f,m,n] v) => (float[o,p,r,s] y) {{
    t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) w = Softmax <axis = -1> (s)
    y = MatMul (w, v)
}}"""

NORM = f"""{HEAD} g (float[a,b] x, float[c,d] z) => (float[e,f] y)
    <float[3] w = {{1.0, 2.0, 4.0}}> {{ s = Add (x, z) y = LayerNormalization (s, w) }}"""


def _compiled(text: str, **options: object) -> tuple[mgx_mlir.IreeProgram, bytes]:
    text = text.replace("(x, axes)", "(x)")
    model = onnx.parser.parse_model(text).SerializeToString()
    return mgx_mlir.compile(model, "cpu", threads=1, cache=False, **options), model


def _draw(*shapes: Sequence[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(len(shapes))
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def test_equal_dims_have_a_function_of_their_own() -> None:
    program, _ = _compiled(SUM)
    [variant] = program.signature.variants
    assert variant == Variant(FUNCTION, (), (((0, 0), (1, 0)), ((0, 1), (1, 1))))
    cases = {
        ((4, 5), (4, 5)): FUNCTION, ((4, 5), (1, 5)): "main", ((1, 1), (3, 2)): "main",
        ((4, 1), (1, 7)): "main", ((0, 5), (0, 5)): FUNCTION, ((0, 5), (1, 1)): "main",
        ((1, 1), (1, 1)): FUNCTION,
    }  # fmt: skip
    for shapes, function in cases.items():
        x, z = _draw(*shapes)
        for _ in range(3):  # calls at shapes that came before are prepared
            assert program.function_for([x, z]) == function
            np.testing.assert_allclose(program.run({"x": x, "z": z})[0], np.exp(x + z), rtol=1e-6)
    with pytest.raises(mgx_mlir.MgxError):
        program.run(dict(zip("xz", _draw((4, 5), (3, 5)), strict=True)))


@pytest.mark.skipif(isa_of("host") is None, reason="the backend fuses by itself")
def test_it_has_the_kernels_of_one_name() -> None:
    for text, names in ((SUM, 1), (CHAIN, 1)):
        program, _ = _compiled(text)
        assert len(program.executable.launches(FUNCTION)) == names
        assert len(program.executable.launches("main")) > names
        assert len(program.kernels) == names  # only the kernels of ordinary calls


def test_sizes_of_weights() -> None:
    """An input that a weight is multiplied with is of its size, or of 1."""
    program, model = _compiled(SCALED)
    assert program.signature.variants == (Variant(FUNCTION, ((0, 1, 3),), ()),)
    session = ort_session(model)
    for shape, function in (((5, 3), FUNCTION), ((0, 3), FUNCTION), ((5, 1), "main")):
        [x] = _draw(shape)
        assert program.function_for([x]) == function
        np.testing.assert_allclose(
            program.run({"x": x})[0], session.run(None, {"x": x})[0], rtol=1e-6
        )


def test_sizes_that_checks_demand() -> None:
    """A norm demands the size of its scale, here of a sum of two inputs."""
    program, model = _compiled(NORM)
    [variant] = program.signature.variants
    assert variant == Variant(FUNCTION, ((0, 1, 3), (1, 1, 3)), (((0, 0), (1, 0)),))
    if isa_of("host") is not None:
        assert len(program.executable.launches(FUNCTION)) == 1
    cases = {
        ((5, 3), (5, 3)): FUNCTION, ((5, 3), (1, 3)): "main", ((5, 3), (5, 1)): "main",
        ((0, 3), (0, 3)): FUNCTION,
    }  # fmt: skip
    for shapes, function in cases.items():
        assert program.function_for(_draw(*shapes)) == function
    calls = [dict(zip("xz", _draw(*shapes), strict=True)) for shapes in cases]
    compare(program, ort_session(model), calls, atol=1e-6)
    with pytest.raises(mgx_mlir.MgxError, match="of extent 3 along dim 1"):
        program.run(dict(zip("xz", _draw((5, 4), (5, 4)), strict=True)))


def test_what_equal_dims_make_equal_in_turn() -> None:
    program, model = _compiled(CHAIN)
    [variant] = program.signature.variants
    assert variant.alike == (((0, 0), (1, 0), (2, 0)), ((0, 1), (1, 1), (2, 1)))
    shapes = (
        ((2, 3, 9, 5), (2, 3, 7, 5), (2, 3, 7, 4)),
        ((2, 3, 9, 5), (1, 3, 7, 5), (2, 1, 7, 4)),
        ((1, 1, 1, 8), (1, 1, 1, 8), (1, 1, 1, 8)),
    )
    calls = [dict(zip("qkv", _draw(*each), strict=True)) for each in shapes]
    compare(program, ort_session(model), calls, atol=1e-6)


def test_dims_that_are_not_taken_to_be_the_same() -> None:
    # one name already; two numbers for one dim; an expansion, which as a rule starts at 1
    for text in (
        f"{HEAD} g (float[a,b] x, float[a,b] z) => (float[a,b] y) {{ y = Add (x, z) }}",
        f"""{HEAD} g (float[a] x) => (float[b] y, float[c] z)
            <float[3] v = {{1.0, 2.0, 4.0}}, float[2] w = {{1.0, 2.0}}>
            {{ y = Mul (x, v) z = Mul (x, w) }}""",
        f"""{HEAD} g (float[a] x, float[b] l) => (float[c] y)
            {{ s = Shape (l) y = Expand (x, s) }}""",
    ):
        assert _compiled(text)[0].signature.variants == ()


def test_sizes_out_of_a_table_of_weights() -> None:
    """Numbers of a list lie in the weights of the program, where equal dims are searched, too."""
    table = ", ".join(str(i % 5 + 1) for i in range(20))
    program, model = _compiled(f"""{HEAD} g (float[a,b] x, float[c,d] l) => (float[e,f] y)
        <int64[20] t = {{{table}}}, int64[1] zero = {{0}}, int64[1] one = {{1}}> {{
        s = Shape (l) n = Slice (s, zero, one) k = Gather <axis = 0> (t, n)
        r = Concat <axis = 0> (k, n) y = Expand (x, r)
    }}""")
    session = ort_session(model)
    for rows in (1, 7):
        x, z = _draw((1, 1), (rows, 2))
        [want] = session.run(None, {"x": x, "l": z})
        np.testing.assert_array_equal(program.run({"x": x, "l": z})[0], want)


def test_files_and_caches_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    model = onnx.parser.parse_model(SUM).SerializeToString()
    first, again = (mgx_mlir.compile(model, "cpu", threads=1) for _ in range(2))
    assert again.stats.cached
    assert again.signature.variants == first.signature.variants
    x, z = _draw((3, 4), (3, 4))
    assert again.function_for([x, z]) == FUNCTION
    np.testing.assert_array_equal(again.run({"x": x, "z": z})[0], first.run({"x": x, "z": z})[0])
    for given in (first.signature, Signature((), ())):
        assert Signature.from_json(given.to_json()) == given

"""Gradient against differences of the function in f64, an operator at a time and in chains."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

import contrib_cases
import numpy as np
import onnx.parser
import pytest

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.frontends.onnx.ops.gradient import RULES

# y from a {2, 3}, w {3, 4} and c {4}, all above 0; `to` are initializers
BODIES = {
    "unary": "t = Exp(a) u = Log(t) v = Sqrt(u) s = Sin(v) o = Cos(s) y = Tan(o)",
    "curves": "t = Tanh(a) u = Sigmoid(t) v = Erf(u) s = Reciprocal(v) y = Neg(s)",
    "hyperbolic": "t = Sinh(a) u = Cosh(t) v = Abs(u) y = Relu(v)",
    "products": "m = MatMul(a, w) s = Add(m, c) t = Div(s, c) u = Sub(t, c) y = Mul(u, u)",
    "powers": "m = MatMul(a, w) t = Pow(m, c) y = Mul(t, half)",
    "choices": "m = MatMul(a, w) t = Max(m, c) u = Min(t, half) k = Greater(m, c) "
               "y = Where(k, u, m)",
    "sums": "s = Softmax(a) r = ReduceMean <axes = [1], keepdims = 0> (s) "
            "q = ReduceSum(a) y = Mul(r, q)",
    "views": "t = Transpose(a) r = Reshape(t, shape) s = Slice(r, one, three) "
             "u = Concat <axis = 0> (s, r) v = Unsqueeze(u, one) z = Squeeze(v, one) y = Mul(z, z)",
    "gemm": "g = Gemm <transB = 1> (s, w) s = MatMul(a, w) y = Mul(g, a)",
    "batches": "x = Reshape(w, batch) m = MatMul(x, c1) t = Tanh(m) y = Mul(t, t) "
               "c1 = Reshape(c, column)",
}  # fmt: skip
TYPES = "double[2,3] a, double[3,4] w, double[4] c"
CONSTANTS = (
    "double half = {0.5}, int64[2] shape = {3, 2}, int64[1] one = {1}, int64[1] three = {3},"
    "int64[3] batch = {3, 1, 4}, int64[2] column = {4, 1}"
)


def model(body: str, result: str, more: str = "") -> bytes:
    opsets = '"" : 13, "ai.onnx.preview.training" : 1'
    text = f"<ir_version: 8, opset_import: [{opsets}]> g ({TYPES}) => ({result}) <{CONSTANTS}> {{"
    return onnx.parser.parse_model(f"{text} {body} {more} }}").SerializeToString()


def gradient(xs: str = '"a", "w", "c"', inputs: str = "a, w, c") -> str:
    return f'da, dw, dc = ai.onnx.preview.training.Gradient <xs = [{xs}], y = "y"> ({inputs})'


def arrays() -> dict[str, np.ndarray]:
    g = np.random.default_rng(0)
    return {n: g.random(d) + 0.3 for n, d in (("a", (2, 3)), ("w", (3, 4)), ("c", (4,)))}


def by_differences(body: str) -> list[np.ndarray]:
    data, feeds, step = model(body, "double[] y"), arrays(), 1e-6
    found = []
    for name, x in feeds.items():
        by = np.zeros_like(x)
        for at in np.ndindex(*x.shape):
            sums = []
            for sign in (1, -1):
                moved = x.copy()
                moved[at] += sign * step
                (y,) = contrib_cases.run(data, {**feeds, name: moved}, "ref")
                sums.append(y.sum())
            by[at] = (sums[0] - sums[1]) / (2 * step)
        found.append(by)
    return found


def check(bodies: dict[str, str], target: str) -> None:
    for name, body in bodies.items():
        data = model(body, "double[] da, double[] dw, double[] dc", gradient())
        for got, want in zip(
            contrib_cases.run(data, arrays(), target), by_differences(body), strict=True
        ):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("name", BODIES)
def test_reference(name: str) -> None:
    check({name: BODIES[name]}, "ref")


def test_compiled() -> None:
    check({name: BODIES[name] for name in ("products", "choices", "views")}, "cpu")


def test_every_rule_is_met() -> None:
    """Views may differ, because the importer makes them in another form."""
    names = set()
    for body in BODIES.values():
        text = str(parse_onnx_buffer(model(body, "double[] y")).module)
        names |= {r for r in RULES if f'"migraphx.{r}"' in text}
    rest = set(RULES) - names
    assert rest == {"broadcast", "contiguous", "flatten", "identity", "rsqrt", "scalar"}


def test_intermediate_values_and_second_derivatives() -> None:
    """y = (a a)^3 by h = a a; and the derivative of that derivative."""
    body = (
        "h = Mul(a, a) k = Mul(h, h) y = Mul(k, h)"
        ' first = ai.onnx.preview.training.Gradient <xs = ["h"], y = "y"> (h)'
        ' second = ai.onnx.preview.training.Gradient <xs = ["h"], y = "first"> (h)'
    )
    data, feeds = model(body, "double[2,3] first, double[2,3] second"), arrays()
    first, second = contrib_cases.run(data, feeds, "ref")
    h = feeds["a"] ** 2
    np.testing.assert_allclose(first, 3 * h**2, rtol=1e-12)
    np.testing.assert_allclose(second, 6 * h, rtol=1e-12)


def test_what_y_does_not_depend_on_has_zeros() -> None:
    data = model("y = Mul(a, a)", "double[] da, double[] dw, double[] dc", gradient())
    da, dw, dc = contrib_cases.run(data, arrays(), "ref")
    assert np.count_nonzero(da) == 6
    assert (dw.shape, dc.shape) == ((3, 4), (4,))
    assert not dw.any()
    assert not dc.any()


@pytest.mark.parametrize(
    ("body", "more", "why"),
    [
        ("y = CumSum(a, one)", gradient(), "a derivative of 'prefix_scan_sum'"),
        ("z = Mul(a, a) y = Mul(z, z)", gradient('"z", "w", "c"'), "values other than the graph"),
    ],
)
def test_refused(body: str, more: str, why: str) -> None:
    with pytest.raises(UnsupportedModel, match=why):
        parse_onnx_buffer(model(body, "double[] da, double[] dw, double[] dc", more))

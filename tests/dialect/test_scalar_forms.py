"""Every pointwise op's scalar form against its reference, and its accuracy against wider math."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.op import OPS, Pointwise
from tests.dialect.evaluation import scalar, ulps
from tests.support.ops import evaluate

POINTWISE = sorted(n for n, c in OPS.items() if issubclass(c, Pointwise))


def _tolerance(dtype: np.dtype) -> float:
    # the two forms round differently by a few units in the last place
    return {"float32": 2e-6, "float64": 1e-13, "float16": 1e-3, "bfloat16": 8e-3}.get(
        dtype.name, 0.13
    )


@pytest.mark.parametrize("name", POINTWISE)
def test_scalar_form_is_the_reference(name: str) -> None:
    """On the op's own examples: NaN, infinities and integers exactly, floats to rounding."""
    count = 0
    for operands, attributes in OPS[name].examples():
        present = [x for x in operands if x is not None]
        want = evaluate(name, *operands, **attributes)
        found = scalar(name, *present, **attributes)
        assert found.dtype == want.dtype
        assert found.shape == want.shape
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(found, want, err_msg=f"{operands} {attributes}")
        else:
            tolerance = _tolerance(want.dtype)
            np.testing.assert_allclose(
                found.astype(np.float64),
                want.astype(np.float64),
                rtol=tolerance,
                atol=tolerance * 0.1,
                err_msg=f"{name} {operands} {attributes}",
            )
        count += 1
    assert count > 0


def _spread(low: float, high: float, kind: Any) -> np.ndarray:
    """Points of every magnitude between the bounds, of both signs where they allow."""
    tiny = 2.0 ** (-30 if kind is np.float32 else -60)
    size = np.geomspace(tiny, max(abs(low), abs(high)), 3000)
    points = np.concatenate([size, -size, np.linspace(low, high, 3000), [0.0, -0.0]])
    return points[(points >= low) & (points <= high)].astype(kind)


_ERF = np.frompyfunc(math.erf, 1, 1)

# name: oracle, domain, units in the last place allowed for f32 and f64. The oracle is numpy in
# the next wider type, so it shares nothing with the polynomials.
ACCURACY: dict[str, tuple[Any, tuple[float, float], tuple[float, float]]] = {
    "sin": (np.sin, (-1e3, 1e3), (2, 2)),
    "cos": (np.cos, (-1e3, 1e3), (2, 2)),
    "tan": (np.tan, (-1e3, 1e3), (3.5, 3.5)),
    "asin": (np.arcsin, (-1, 1), (2.5, 2.5)),
    "acos": (np.arccos, (-1, 1), (2, 2)),
    "atan": (np.arctan, (-1e6, 1e6), (2.5, 2.5)),
    "sinh": (np.sinh, (-89.4, 89.4), (4, 4)),
    "cosh": (np.cosh, (-89.4, 89.4), (4, 4)),
    "tanh": (np.tanh, (-30, 30), (1, 4)),
    "asinh": (np.arcsinh, (-1e30, 1e30), (4, 4)),
    "acosh": (np.arccosh, (1, 1e30), (4, 4)),
    "atanh": (np.arctanh, (-1, 1), (4, 4)),
    "erf": (lambda x: _ERF(x.astype(float)).astype(float), (-7, 7), (1, 3)),
    "log": (np.log, (1e-30, 1e30), (1, 1)),
    "log2": (np.log2, (1e-30, 1e30), (1, 2.5)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-80, 80), (3, 3)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), (-80, 80), (3, 3)),
}


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", list(ACCURACY))
def test_accuracy(name: str, kind: Any) -> None:
    oracle, domain, allowed = ACCURACY[name]
    x = _spread(*domain, kind)
    wide = np.float64 if kind is np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        want = oracle(x.astype(wide))
    error = ulps(scalar(name, x), want)
    assert error <= allowed[kind is np.float64], f"{error:.2f} units in the last place"


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["f32", "f64"])
def test_large_phase(kind: Any) -> None:
    """sin and cos stay exact to 1e6 (f32), and never leave [-1, 1]."""
    x = np.random.default_rng(0).uniform(-1e6, 1e6, 4000).astype(kind)
    wide = np.longdouble
    for name, f in (("sin", np.sin), ("cos", np.cos)):
        error = np.abs(scalar(name, x).astype(wide) - f(x.astype(wide))).max()
        assert error < (2e-7 if kind is np.float32 else 1e-15)
        far = np.array([1e10, -1e20, 3e38], kind)
        assert (np.abs(scalar(name, far)) <= 1.0000001).all()


def test_logarithm_of_subnormals() -> None:
    x = np.array([1e-40, 1e-45, 2.0**-126], np.float32)
    for name, f in (("log", np.log), ("log2", np.log2)):
        assert ulps(scalar(name, x), f(x.astype(np.float64))) <= 1


def test_power() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0.01, 50, 3000).astype(np.float32)
    y = rng.uniform(-20, 20, 3000).astype(np.float32)
    want = np.power(x.astype(np.float64), y.astype(np.float64))
    assert ulps(scalar("pow", x, y), want) <= 1
    wide = x.astype(np.float64), y.astype(np.float64)
    want = np.power(*(v.astype(np.longdouble) for v in wide))
    found = scalar("pow", *wide)
    # exp(y log x): the product's rounding grows with |y log x|
    assert np.max(np.abs(found - want) / want) < 2 * 80 * 1.11e-16
    edge = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, np.inf, -np.inf, np.nan, 3, -3])
    base, exponent = (v.reshape(-1) for v in np.meshgrid(edge, edge))
    with np.errstate(all="ignore"):
        want = np.power(base, exponent)
    for kind in (np.float32, np.float64):
        found = scalar("pow", base.astype(kind), exponent.astype(kind))
        assert ulps(found, want.astype(np.longdouble)) <= 2


@pytest.mark.parametrize("name", ["mod", "fmod"])
def test_remainder_of_far_quotients(name: str) -> None:
    """f64 has no remainder of its own on the targets: exact here too."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 2000) * 10.0 ** rng.integers(-5, 30, 2000)
    y = rng.uniform(-1, 1, 2000) * 10.0 ** rng.integers(-5, 5, 2000)
    want = np.mod(x, y) if name == "mod" else np.fmod(x, y)
    np.testing.assert_allclose(scalar(name, x, y), want, rtol=1e-15)
    edge = np.array([0.0, -0.0, 1, -1, 3, -3, np.inf, -np.inf, np.nan, 2.5])
    a, c = (v.reshape(-1) for v in np.meshgrid(edge, edge))
    with np.errstate(all="ignore"):
        want = np.mod(a, c) if name == "mod" else np.fmod(a, c)
    for kind in (np.float32, np.float64):
        found = scalar(name, a.astype(kind), c.astype(kind))
        np.testing.assert_array_equal(found, want.astype(kind))
        number = ~np.isnan(want)
        assert (np.signbit(found) == np.signbit(want))[number].all()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("name", ["div", "mod", "fmod", "pow"])
def test_integer_arithmetic_never_traps(name: str, kind: Any) -> None:
    """Against Python's unbounded integers, wrapped; division by 0 gives 0."""
    info = np.iinfo(kind)
    edge = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1]
    if info.min < 0:
        edge += [-1, -2, -3, -7]

    def exact(x: int, y: int) -> int:
        if name == "pow":
            if y < 0:
                return x ** (y % 2) if x in (1, -1) else 0
            return pow(x, y, 1 << info.bits)
        if y == 0:
            return 0
        q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return {"div": q, "fmod": x - q * y, "mod": x % y}[name]

    a, c = (np.array(v).reshape(-1).astype(kind) for v in np.meshgrid(*[np.array(edge, kind)] * 2))
    want = [exact(int(x), int(y)) & ((1 << info.bits) - 1) for x, y in zip(a, c, strict=True)]
    expected = np.array(want, f"u{info.bits // 8}").view(kind)
    np.testing.assert_array_equal(scalar(name, a, c), expected)
    np.testing.assert_array_equal(evaluate(name, a, c), expected)

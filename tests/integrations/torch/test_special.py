"""Special functions against mpmath, in f64; their special values against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch

import mgx_mlir.torch
from mgx_mlir.frontends import torch_special as special

pytestmark = pytest.mark.slow
F64 = torch.float64
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 1.5, -1.5, 3e38, 1e-40, -1e-40, 100.0,
           math.inf, -math.inf, math.nan]  # fmt: skip


def spread(*parts: tuple[float, float]) -> torch.Tensor:
    """200 numbers of each interval."""
    return torch.cat([torch.linspace(a, b, 200, dtype=F64) for a, b in parts])


def magnitudes(low: float, high: float) -> torch.Tensor:
    return torch.logspace(low, high, 60, dtype=F64)


def polygamma(n: int) -> Callable[[Any], Any]:
    return lambda x: special.polygamma(n, x)


def quantile(p: Any) -> Any:
    start = float(torch.special.ndtri(torch.tensor(float(p), dtype=F64)))
    return mpmath.findroot(lambda y: mpmath.log(mpmath.erfc(-y / mpmath.sqrt(2)) / 2 / p), start,
                           tol=1e-50)  # fmt: skip


@pytest.mark.parametrize(
    ("function", "exact", "x"),
    [
        (special.lgamma, lambda a: mpmath.log(abs(mpmath.gamma(a))),
         torch.cat([spread((0.01, 0.9), (2.1, 30), (-20.3, -3.01)), magnitudes(-30, 30)])),
        (special.digamma, mpmath.digamma,
         torch.cat([spread((0.01, 30), (-20.3, -0.01)), magnitudes(-20, 30)])),
        *((polygamma(n), lambda a, n=n: mpmath.polygamma(n, a),
           torch.cat([spread((0.01, 30), (-20.3, -0.01)), magnitudes(-10, 10)]))
          for n in (1, 2, 3, 6)),
        (special.erfc, mpmath.erfc, torch.cat([spread((-6, 6), (6, 20)), magnitudes(-20, 0)])),
        (special.erfcx, lambda a: mpmath.exp(a * a) * mpmath.erfc(a),
         torch.cat([spread((-20, 6), (6, 30)), magnitudes(-20, 9)])),
        (special.erfinv, mpmath.erfinv,
         torch.cat([spread((-0.9999, 0.9999)), 1 - magnitudes(-15, -2), magnitudes(-300, -1)])),
        (special.ndtri, quantile, torch.cat([spread((1e-4, 0.4999)), magnitudes(-300, -2)])),
        (special.i0, lambda a: mpmath.besseli(0, a), spread((-30, 30), (30, 600))),
        (special.i1, lambda a: mpmath.besseli(1, a), spread((-30, 30), (30, 600))),
        (special.i0e, lambda a: mpmath.besseli(0, a) * mpmath.exp(-abs(a)), magnitudes(-9, 3)),
        (special.i1e, lambda a: mpmath.besseli(1, a) * mpmath.exp(-abs(a)), magnitudes(-9, 3)),
    ],
)  # fmt: skip
def test_within_1e_12(function: Any, exact: Any, x: torch.Tensor) -> None:
    """A relative error, and near a root as much of 1."""
    with mpmath.workdps(40):
        want = torch.tensor([float(exact(mpmath.mpf(v))) for v in x.tolist()], dtype=F64)
    got = function(x)
    bound = 1e-12 * want.abs() + (1e-14 if function in (special.lgamma, special.digamma) else 0)
    assert bool(((got - want).abs() <= bound).all()), float(((got - want).abs() / bound).max())


@pytest.mark.parametrize(
    "name",
    [
        "lgamma",
        "digamma",
        "erfc",
        "erfcx",
        "erfinv",
        "ndtri",
        "i0",
        "i0e",
        "i1",
        "i1e",
        "polygamma",
    ],
)
def test_special_values_are_those_of_torch(name: str) -> None:
    x = torch.tensor(SPECIAL)
    if name == "polygamma":
        for n in (2, 3):
            torch.testing.assert_close(
                special.polygamma(n, x), torch.polygamma(n, x), equal_nan=True
            )
        # at its poles torch's own has 1e15, of a sine in f32 that is not quite 0
        x = x[(x > 0) | (x != x.floor())]
        x = x[(x.abs() > 1e-30) & ~x.isinf()]
        torch.testing.assert_close(special.polygamma(1, x), torch.polygamma(1, x))
        return
    theirs = getattr(torch.special, {"lgamma": "gammaln"}.get(name, name))
    torch.testing.assert_close(getattr(special, name)(x), theirs(x), equal_nan=True)


class Many(torch.nn.Module):
    """All of them, of one input."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        s = torch.special
        return [
            torch.lgamma(x), torch.digamma(x), torch.polygamma(1, x), torch.polygamma(3, x),
            torch.erfinv(x / 9), s.ndtri(x / 9), torch.i0(x), s.i0e(x), s.i1(x), s.i1e(x),
            torch.mvlgamma(x + 3, 2), torch.lgamma((x * 4).int()),
        ]  # fmt: skip


def test_compiled_like_eager() -> None:
    dims = {0: torch.export.Dim("n", min=2)}
    run = mgx_mlir.torch.compile(Many(), (torch.rand(3, 4),), dynamic_shapes=(dims,), target="ref")
    for n in (3, 50):
        x = 0.1 + 8 * torch.rand(n, 4)
        for got, want in zip(run(x), Many()(x), strict=True):
            torch.testing.assert_close(got, want, rtol=2e-6, atol=2e-6)


def test_tails_keep_their_digits() -> None:
    """Eager's values in f64: 1 - erf(x) is 0 from 4 on in f32."""
    x = torch.linspace(-9, 9, 181)

    def tails(x: torch.Tensor) -> list[torch.Tensor]:
        s = torch.special
        return [torch.erfc(x), s.erfc(x), s.erfcx(x), s.log_ndtr(-3 * x.abs())]

    class Tails(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return tails(x)

    run = mgx_mlir.torch.compile(Tails(), (x,), target="ref")
    for got, want in zip(run(x), tails(x.double()), strict=True):
        torch.testing.assert_close(got, want.float(), rtol=2e-6, atol=0)

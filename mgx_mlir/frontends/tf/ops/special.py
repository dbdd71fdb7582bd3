"""Complement and inverse of the error function, and the logarithm of the gamma function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mgx_mlir.core.dtypes import DOUBLE
from mgx_mlir.frontends.helpers import compare, convert, number
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate a polynomial by Horner's scheme, the highest power first."""
    out = number(b, coefficients[0], x)
    for c in coefficients[1:]:
        out = b.add(b.mul(out, x), c)
    return out


# (1 + 2 x) erfc(x) exp(x^2) for x >= 0 as a polynomial of t = (x - 3) / (x + 3), which is in
# [-1, 1): a Chebyshev fit, in error below 1e-15
_ERFC = (
    9.862533536509068e-10, -3.181354143876836e-09, -1.3312919676163782e-08,
    2.7843881267590046e-08, 1.0183620607646434e-07, -1.2054142286984782e-07,
    -6.166011460944306e-07, 3.3669790807071775e-07, 3.472370945026339e-06,
    -7.187883834459546e-07, -2.0100542268554527e-05, 4.944124342226615e-06,
    0.00012509934245838407, -0.0001051583129781323, -0.0007798322696543334,
    0.0018886900977441497, 0.00252939181569397, -0.023770514891530075, 0.0683080273440099,
    -0.11927366341676002, 0.1296451587027594, -0.04756229435342038, -0.13562110612458117,
    1.2530080582697296,
)  # fmt: skip


@tf_op("Erfc")
def erfc(b: Builder, node: Node, x: Value) -> Value:
    """Return 1 - erf(x) in f64, with full precision where it is small."""
    return in_f64(b, x, lambda v: _erfc(b, v))


def in_f64(b: Builder, x: Value, function: Callable[[Value], Value]) -> Value:
    """Return `function` of `x`, computed in f64."""
    return convert(b, function(convert(b, x, DOUBLE)), b.dtype(x))


def _erfc(b: Builder, x: Value) -> Value:
    a = b.min(b.abs(x), 30)  # beyond 30 the result is 0; clamping avoids 0 times infinity
    t = b.div(b.sub(a, 3), b.add(a, 3))
    scaled = b.div(polynomial(b, t, _ERFC), b.add(b.mul(a, 2), 1))
    right = b.mul(scaled, b.exp(b.neg(b.mul(a, a))))
    return b.where(
        b.isnan(x), x, b.where(compare(b, "less", x, 0), b.sub(number(b, 2, x), right), right)
    )


# the inverse error function divided by its argument, as polynomials of w = -log(1 - x^2)
_INNER = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
          -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_OUTER = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
          -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip


def _erfinv(b: Builder, x: Value) -> Value:
    """Return erf's inverse: a fit to 1e-6, then two Newton steps; infinite at the ends, NaN
    beyond.
    """
    w = b.neg(b.log(b.mul(b.sub(number(b, 1, x), x), b.add(x, 1))))
    inner = polynomial(b, b.sub(w, 2.5), _INNER)
    outer = polynomial(b, b.sub(b.sqrt(b.max(w, 0)), 3), _OUTER)
    y = b.mul(b.where(compare(b, "less", w, 5), inner, outer), x)
    for _ in range(2):
        # on the side with a small complement, the complement is precise
        a = b.abs(y)
        miss = b.sub(b.sub(number(b, 1, x), b.abs(x)), _erfc(b, a))
        slope = b.mul(b.exp(b.neg(b.mul(a, a))), -2 / math.sqrt(math.pi))
        y = b.mul(b.add(a, b.div(miss, slope)), b.sign(x))
    ends = b.div(x, number(b, 0, x))
    return b.where(
        compare(b, "less", b.abs(x), 1),
        y,
        b.where(compare(b, "greater", b.abs(x), 1), b.log(number(b, -1, x)), ends),
    )


@tf_op("Erfinv")
def erfinv(b: Builder, node: Node, x: Value) -> Value:
    return in_f64(b, x, lambda v: _erfinv(b, v))


@tf_op("Ndtri")
def ndtri(b: Builder, node: Node, x: Value) -> Value:
    """Return the quantile of the normal distribution."""
    return in_f64(b, x, lambda v: b.mul(_erfinv(b, b.sub(b.mul(v, 2), 1)), math.sqrt(2)))


# Lanczos's approximation with g = 7
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip


@tf_op("Lgamma")
def lgamma(b: Builder, node: Node, x: Value) -> Value:
    """Return log |gamma(x)| in f64; below 1/2 by the reflection formula."""
    return in_f64(b, x, lambda v: _lgamma(b, v))


def _lgamma(b: Builder, x: Value) -> Value:
    low = compare(b, "less", x, 0.5)
    z = b.sub(b.where(low, b.sub(number(b, 1, x), x), x), 1)
    total = number(b, _LANCZOS[0], x)
    for i, c in enumerate(_LANCZOS[1:], 1):
        total = b.add(total, b.div(number(b, c, x), b.add(z, i)))
    t = b.add(z, 7.5)
    found = b.add(b.mul(b.add(z, 0.5), b.log(t)), 0.5 * math.log(2 * math.pi))
    found = b.add(b.sub(found, t), b.log(total))
    # sin(pi x) from the distance to the integer below
    part = b.sub(x, b.floor(x))
    sine = b.abs(b.sin(b.mul(part, math.pi)))
    reflected = b.sub(b.log(b.div(number(b, math.pi, x), sine)), found)
    infinite = b.isinf(x)
    return b.where(infinite, b.abs(x), b.where(low, reflected, found))

"""Special functions of torch that ONNX lacks, from exp, log and series, in f64."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, wraps
from typing import Any

import numpy as np

_SHIFT = 10  # least argument of the asymptotic series, where 8 terms give 1e-17


def _in_f64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to compute in f64; its result has torch's type: f32 for integers."""

    @wraps(function)
    def computed(x: Any, *more: Any) -> Any:
        torch = _torch()
        kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        return function(x.to(torch.float64), *more).to(kind)

    return computed


@_in_f64
def lgamma(x: Any) -> Any:
    """Return the logarithm of |gamma(x)|: infinite at 0, -1, -2 and so on."""
    torch = _torch()
    reflected = x < 0.5
    positive = torch.where(reflected, 1 - x, x)
    found = _lgamma_of_positive(positive)
    # gamma(x) gamma(1 - x) = pi / sin(pi x), whose sign and period are irrelevant
    sine = torch.sin(math.pi * (x - x.round())).abs()
    found = torch.where(reflected, math.log(math.pi) - sine.log() - found, found)
    found = torch.where((x == 1) | (x == 2), 0.0, found)
    return torch.where(x.isinf() | ((x <= 0) & (x == x.floor())), torch.inf, found)


def mvlgamma(x: Any, p: int) -> Any:
    """Return the logarithm of the multivariate gamma function of p dims."""
    parts = [lgamma(x - i / 2) for i in range(p)]
    return sum(parts[1:], parts[0]) + p * (p - 1) / 4 * math.log(math.pi)


@_in_f64
def digamma(x: Any) -> Any:
    """Return the derivative of lgamma: NaN at -1, -2 and so on, infinite at 0."""
    torch = _torch()
    reflected = x < 0
    found = _digamma_of_positive(torch.where(reflected, 1 - x, x))
    found = torch.where(reflected, found - math.pi / torch.tan(math.pi * (x - x.round())), found)
    found = torch.where((x < 0) & (x == x.floor()), torch.nan, found)
    found = torch.where(x == torch.inf, torch.inf, found)
    return torch.where(x == 0, torch.where(torch.signbit(x), torch.inf, -torch.inf), found)


def polygamma(n: int, x: Any) -> Any:
    """Return the n-th derivative of digamma: infinite at 0, -1 and so on.

    Infinite arguments have torch's values: 0 and NaN for n = 1; for other n NaN at inf.
    """
    return digamma(x) if n == 0 else _derivative_of_digamma(x, n)


@_in_f64
def _derivative_of_digamma(x: Any, n: int) -> Any:
    torch = _torch()
    sign = (-1) ** (n + 1)
    reflected = x < 0
    found = sign * math.factorial(n) * _zeta(n + 1, torch.where(reflected, 1 - x, x))
    # digamma(1 - x) - digamma(x) = pi cot(pi x), differentiated n times
    cotangent = 1 / torch.tan(math.pi * (x - x.round()))
    derivative = _polynomial(_derivative_of_cotangent(n), cotangent) * math.pi ** (n + 1)
    found = torch.where(reflected, -sign * found - derivative, found)
    found = torch.where((x <= 0) & (x == x.floor()), sign * torch.inf, found)
    if n == 1:
        found = torch.where(x.isinf(), torch.where(x > 0, 0.0, torch.nan), found)
    return found


@_in_f64
def erfc(x: Any) -> Any:
    """Return 1 - erf(x); a difference would lose its digits: 1.5e-12 at 5."""
    size = x.abs()
    found = (-size * size).exp() * _erfcx_of_positive(size)
    return _torch().where(x < 0, 2 - found, found)


@_in_f64
def erfcx(x: Any) -> Any:
    """Return exp(x^2) erfc(x)."""
    found = _erfcx_of_positive(x.abs())
    return _torch().where(x < 0, 2 * (x * x).exp() - found, found)


def _erfcx_of_positive(x: Any) -> Any:
    """Return erfcx of x >= 0 in f64: a series in (x - c) / (x + c), divided by 1 + 2 x."""
    return _series(_erfcx_ratio(), 1 - 2 * _MIDDLE / (x + _MIDDLE)) / (1 + 2 * x)


@_in_f64
def erfinv(x: Any) -> Any:
    """Return y with erf(y) = x: infinite at -1 and 1, NaN beyond."""
    torch = _torch()
    size = x.abs()
    # a series of -log(1 - x^2); a difference of squares would lose the last digits near 1
    found = x * _erfinv_ratio(-((1 - size) * (1 + size)).log())
    return torch.where(size == 1, x * torch.inf, found)


def ndtri(x: Any) -> Any:
    """Return the quantile function of the normal distribution: infinite at 0 and 1."""
    torch = _torch()
    kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    wide = x.to(torch.float64)
    # below 1/2 from the small probability itself: 2 x - 1 has lost digits
    lower = _quantile_of_small(torch.minimum(wide, 1 - wide))
    return torch.where(wide <= 0.5, lower, -lower).to(kind)


def _quantile_of_small(p: Any) -> Any:
    """Return the quantile of p in [0, 1/2] in f64."""
    torch = _torch()
    found = (2 * p - 1) * _erfinv_ratio(-(4 * p * (1 - p)).log()) * math.sqrt(2)
    return torch.where(p == 0, -torch.inf, torch.where(p < 0, torch.nan, found))


def _erfinv_ratio(w: Any) -> Any:
    """Return erfinv(x) / x at w = -log(1 - x^2)."""
    near = _series(_erfinv_near(), _into(0, _NEAR, w.clamp(max=_NEAR)))
    scale = w.clamp(_NEAR, _FAR).log()
    far = _series(_erfinv_far(), _into(math.log(_NEAR), math.log(_FAR), scale))
    return _torch().where(w < _NEAR, near, far)


def i0(x: Any) -> Any:
    """Return the modified Bessel function of order 0."""
    return _bessel(x, 0, scaled=False)


def i0e(x: Any) -> Any:
    """Return exp(-|x|) i0(x)."""
    return _bessel(x, 0, scaled=True)


def i1(x: Any) -> Any:
    """Return the modified Bessel function of order 1."""
    return _bessel(x, 1, scaled=False)


def i1e(x: Any) -> Any:
    """Return exp(-|x|) i1(x)."""
    return _bessel(x, 1, scaled=True)


def _bessel(x: Any, order: int, *, scaled: bool) -> Any:
    torch = _torch()
    kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    wide = x.to(torch.float64)
    size = wide.abs()
    near = _series(_bessel_near(order), _into(0, _BEND, size.clamp(max=_BEND)))
    inverse = _into(0, 1 / _BEND, 1 / size.clamp(min=_BEND))
    far = _series(_bessel_far(order), inverse) * size.rsqrt()
    if order:
        near, far = near * wide, torch.where(wide < 0, -far, far)
    found = torch.where(size < _BEND, near, far)
    if not scaled:
        # exp of half the argument twice: the result may be finite where exp is not
        half = (size / 2).exp()
        found = found * half * half
    return found.to(kind)


def _lgamma_of_positive(x: Any) -> Any:
    """Return lgamma of x >= 0.5 by Stirling's series, x shifted to at least 10."""
    torch = _torch()
    below = x < _SHIFT
    shifted = torch.where(below, x + _SHIFT, x)
    factor: Any = math.prod((x + k for k in range(1, _SHIFT)), start=x)
    inverse = 1 / shifted
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(8), 1)]
    found = (shifted - 0.5) * shifted.log() - shifted + math.log(2 * math.pi) / 2
    found = found + inverse * _polynomial(terms, inverse * inverse)
    return torch.where(below, found - factor.log(), found)


def _digamma_of_positive(x: Any) -> Any:
    """Return digamma of x >= 0 by its asymptotic series, x shifted to at least 10."""
    torch = _torch()
    below = x < _SHIFT
    taken = sum((1 / (x + k) for k in range(1, _SHIFT)), 1 / x)
    shifted = torch.where(below, x + _SHIFT, x)
    inverse = 1 / shifted
    square = inverse * inverse
    terms = [b / (2 * k) for k, b in enumerate(_bernoulli(8), 1)]
    found = shifted.log() - 0.5 * inverse - square * _polynomial(terms, square)
    return torch.where(below, found - taken, found)


def _zeta(s: int, x: Any) -> Any:
    """Return the sum of (x + k)^-s over all k >= 0, of x > 0: Euler and Maclaurin's formula."""
    found = sum(((x + k) ** -s for k in range(1, _SHIFT)), x**-s)
    end = x + _SHIFT
    inverse = 1 / end
    # B(2k) / (2k)! times s (s + 1) ... (s + 2k - 2)
    terms = [
        b / math.factorial(2 * k) * math.prod(range(s, s + 2 * k - 1))
        for k, b in enumerate(_bernoulli(8), 1)
    ]
    rest = end / (s - 1) + 0.5 + inverse * _polynomial(terms, inverse * inverse)
    return found + end**-s * rest


@cache
def _bernoulli(count: int) -> Sequence[float]:
    """Return B(2), B(4), and so on."""
    found = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum((math.comb(n + 1, k) * b for k, b in enumerate(found)), Fraction(0))
        found.append(-total / (n + 1))
    return [float(b) for b in found[2::2]]


@cache
def _derivative_of_cotangent(n: int) -> Sequence[float]:
    """Return the n-th derivative of cot as a polynomial in cot, lowest power first."""
    found = np.array([0, 1], dtype=object)
    for _ in range(n):
        slope = np.array([k * c for k, c in enumerate(found)][1:], dtype=object)
        found = -np.polynomial.polynomial.polymul(slope, np.array([1, 0, 1], dtype=object))
    return [float(c) for c in found]


_MIDDLE = 3.75  # argument that splits erfcx's series in the middle


@cache
def _erfcx_ratio() -> Sequence[float]:
    def ratio(u: float) -> float:
        x = _MIDDLE * (1 + u) / (1 - u)
        value = math.erfc(x) * math.exp(x * x) if x < 5 else _scaled_erfc(x)
        return (1 + 2 * x) * value

    return _fitted(ratio, -1, 1, 30)


def _scaled_erfc(y: float) -> float:
    """Return exp(y^2) erfc(y) of y >= 5 by a continued fraction."""
    tail = 0.0
    for k in range(60, 0, -1):
        tail = k / 2 / (y + tail)
    return 1 / (math.sqrt(math.pi) * (y + tail))


# erfinv(x) / x is a series in w = -log(1 - x^2), and in log w for large w; the least probability in
# f64 is at w = 744
_NEAR, _FAR = 6.25, 746.0


@cache
def _erfinv_near() -> Sequence[float]:
    def ratio(w: float) -> float:
        x = math.sqrt(-math.expm1(-w))
        return _erfinv_of(x, w) / x if x else math.sqrt(math.pi) / 2

    return _fitted(ratio, 0, _NEAR, 26)


@cache
def _erfinv_far() -> Sequence[float]:
    def ratio(scale: float) -> float:
        w = math.exp(scale)
        return _erfinv_of(math.sqrt(-math.expm1(-w)), w) / math.sqrt(-math.expm1(-w))

    return _fitted(ratio, math.log(_NEAR), math.log(_FAR), 36)


def _erfinv_of(x: float, w: float) -> float:
    """Return erfinv by Newton's method, on the logarithm of erfc where x is near 1."""
    y = math.sqrt(w) * 0.9
    # log(1 - x) = -w - log(1 + x)
    wanted = -w - math.log1p(x)
    for _ in range(60):
        if x < 0.5:
            step = (math.erf(y) - x) / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        else:
            value, slope = _log_erfc(y)
            step = (value - wanted) / slope
        y -= step
        if abs(step) < 1e-15 * y:
            break
    return y


def _log_erfc(y: float) -> tuple[float, float]:
    """Return log(erfc(y)) and its derivative, beyond the range of erfc by a continued fraction."""
    if y < 5:
        value = math.erfc(y)
        return math.log(value), -2 / math.sqrt(math.pi) * math.exp(-y * y) / value
    scaled = _scaled_erfc(y)
    return math.log(scaled) - y * y, -2 / math.sqrt(math.pi) / scaled


# exp(-x) i(x), divided by x for order 1, is a series in x; for large x, exp(-x) i(x) sqrt(x) in 1 /
# x
_BEND = 8.0


@cache
def _bessel_near(order: int) -> Sequence[float]:
    return _fitted(lambda x: _bessel_of(x, order), 0, _BEND, 32)


@cache
def _bessel_far(order: int) -> Sequence[float]:
    limit = 1 / math.sqrt(2 * math.pi)
    return _fitted(
        lambda t: _bessel_of(1 / t, order) * t ** (-0.5 - order) if t > 1e-7 else limit,
        0,
        1 / _BEND,
        28,
    )


def _bessel_of(x: float, order: int) -> float:
    """Return exp(-x) i(x), divided by x for order 1.

    It is the mean of exp(x (cos t - 1)) over a period, times sin(t)^2 for order 1. The error of the
    trapezoidal rule falls faster than any power of the number of steps.
    """
    # the whole period, or the part where exp is above 1e-17
    width = math.pi if x < 100 else 9 / math.sqrt(x)
    step = width / 128
    t = np.arange(-128, 128) * step
    each = np.exp(-2 * x * np.sin(t / 2) ** 2) * np.sin(t) ** (2 * order)
    return float(np.sum(each) * step / math.tau)


def _fitted(f: Callable[[float], float], low: float, high: float, degree: int) -> Sequence[float]:
    """Return the Chebyshev series that interpolates a function on an interval."""
    middle, half = (low + high) / 2, (high - low) / 2
    points = np.polynomial.chebyshev.chebpts1(degree + 1)
    values = [f(float(middle + half * u)) for u in points]
    return [float(c) for c in np.polynomial.chebyshev.chebfit(points, values, degree)]


def _into(low: float, high: float, x: Any) -> Any:
    """Map x from an interval to [-1, 1]."""
    return (x - (low + high) / 2) * (2 / (high - low))


def _series(terms: Sequence[float], u: Any) -> Any:
    """Evaluate a Chebyshev series at u by Clenshaw's recurrence."""
    last = before = _torch().zeros_like(u)
    for c in reversed(terms[1:]):
        last, before = 2 * u * last - before + c, last
    return u * last - before + terms[0]


def _polynomial(terms: Sequence[float], x: Any) -> Any:
    """Evaluate a polynomial, lowest power first, by Horner's rule."""
    found = _torch().full_like(x, terms[-1])
    for c in reversed(terms[:-1]):
        found = found * x + c
    return found


def _torch() -> Any:
    return importlib.import_module("torch")

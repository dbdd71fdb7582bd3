"""Functions on scalars that a target's math library lacks, or computes inaccurately or unsafely.

Each takes a ScalarBuilder and values of f32 or f64 (or integers, if stated). The error is a few
units in the last place; signed zeros, infinities and NaN are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.dialects.migraphx import scalar_tables as tables

INF, NAN = math.inf, math.nan
LN2 = math.log(2.0)


def is_f64(x: Scalar) -> bool:
    """Return whether a scalar is f64, which needs longer polynomials."""
    return x.dtype is dtypes.DOUBLE


def polynomial(b: ScalarBuilder, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """Evaluate by Horner's rule, lowest power first."""
    found = b.const(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        found = b.fma(found, x, c)
    return found


def _of(table: tables.Table, x: Scalar) -> tuple[float, ...]:
    return table[1] if is_f64(x) else table[0]


def odd(b: ScalarBuilder, x: Scalar, table: tables.Table) -> Scalar:
    """x + x z P(z), z = x^2."""
    z = b.mul(x, x)
    return b.fma(b.mul(x, z), polynomial(b, z, _of(table, x)), x)


# ---- exponentials and logarithms -----------------------------------------------------------------


def log(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return the natural logarithm; subnormal f32 are scaled first, because targets may flush
    them.
    """
    if is_f64(x):
        return b.log(x)
    tiny = b.cmp("lt", b.abs(x), 2.0**-126)
    scaled = b.select(tiny, b.mul(x, 2.0**32), x)
    return b.sub(b.log(scaled), b.select(tiny, b.const(32 * LN2, x.dtype), 0.0))


def log2(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return log2(x), exact at powers of two; f64 from the natural logarithm."""
    if is_f64(x):
        natural = b.log(x)
        found = b.mul(natural, 1.4426950408889634)
        # an integer within the rounding error of the product is the exact result
        nearest = b.round_even(found)
        exact = b.cmp("le", b.abs(b.sub(found, nearest)), b.mul(b.abs(found), 2.0**-52))
        return b.select(exact, nearest, found)
    tiny = b.cmp("lt", b.abs(x), 2.0**-126)
    scaled = b.select(tiny, b.mul(x, 2.0**32), x)
    return b.sub(b.log2(scaled), b.select(tiny, b.const(32.0, x.dtype), 0.0))


def log1p(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(1 + x), accurate near 0: the rounding of u = 1 + x is undone by x / (u - 1)."""
    u = b.add(x, 1.0)
    near = b.cmp("eq", u, 1.0)
    rest = b.select(near, b.const(1.0, x.dtype), b.sub(u, 1.0))
    found = b.select(near, x, b.mul(b.log(u), b.div(x, rest)))
    return b.select(b.cmp("eq", x, INF), x, found)


def expm1(b: ScalarBuilder, x: Scalar) -> Scalar:
    """exp(x) - 1, accurate near 0."""
    small = b.fma(b.mul(x, x), polynomial(b, x, _of(tables.EXPM1, x)), x)
    return b.select(b.cmp("le", b.abs(x), 0.5), small, b.sub(b.exp(x), 1.0))


def sigmoid(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return 1 / (1 + exp(-x)), in the builder's own form."""
    return b.sigmoid(x)


def sigmoid_by_exp(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return 1 / (1 + exp(-x)); an overflow of exp correctly gives 0."""
    return b.div(b.const(1.0, x.dtype), b.add(b.exp(b.neg(x)), 1.0))


def tanh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return tanh; of f64 by exp."""
    if not is_f64(x):
        return b.tanh(x)
    return tanh_by_exp(b, x)


def tanh_by_exp(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return tanh as -t / (t + 2), t = exp(-2 |x|) - 1, for targets without tanh."""
    t = expm1(b, b.mul(b.abs(x), -2.0))
    return b.copysign(b.div(b.neg(t), b.add(t, 2.0)), x)


def _half_exp(b: ScalarBuilder, a: Scalar) -> Scalar:
    """exp(a) / 2, a >= 0, without overflow before the result overflows."""
    t = b.exp(b.mul(a, 0.5))
    return b.mul(b.mul(t, 0.5), t)


def sinh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return sinh: a polynomial up to 1, beyond it by exp without an early overflow."""
    a = b.abs(x)
    big = _half_exp(b, a)
    big = b.copysign(b.sub(big, b.div(b.const(0.25, x.dtype), big)), x)
    return b.select(b.cmp("le", a, 1.0), odd(b, x, tables.SINH), big)


def cosh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return cosh, by exp without an early overflow."""
    big = _half_exp(b, b.abs(x))
    return b.add(big, b.div(b.const(0.25, x.dtype), big))


def _log_twice(b: ScalarBuilder, a: Scalar) -> Scalar:
    """log(2 a) where 2 a may overflow."""
    return b.add(b.log(a), LN2)


def _huge(x: Scalar) -> float:
    """Return the number beyond which 1 + x^2 rounds to x^2."""
    return 2.0**28 if is_f64(x) else 2.0**13


def asinh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sign(x) log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|."""
    a = b.abs(x)
    large = b.cmp("gt", a, _huge(x))
    s = b.mul(a, a)
    root = b.add(b.sqrt(b.add(s, 1.0)), 1.0)
    small = log1p(b, b.add(a, b.div(s, root)))
    return b.copysign(b.select(large, _log_twice(b, a), small), x)


def acosh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log1p(t + sqrt(2 t + t^2)), t = x - 1; NaN below 1."""
    t = b.sub(x, 1.0)
    small = log1p(b, b.add(t, b.sqrt(b.fma(t, t, b.add(t, t)))))
    found = b.select(b.cmp("gt", x, _huge(x)), _log_twice(b, x), small)
    return b.select(b.cmp("lt", x, 1.0), b.const(NAN, x.dtype), found)


def atanh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sign(x) log1p(2 a / (1 - a)) / 2, a = |x|."""
    a = b.abs(x)
    ratio = b.div(b.add(a, a), b.sub(b.const(1.0, x.dtype), a))
    return b.copysign(b.mul(log1p(b, ratio), 0.5), x)


def erf(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return erf; of f64 by polynomials up to 1 and beyond it."""
    if not is_f64(x):
        return b.copysign(b.erf(x), x)
    z = b.mul(x, x)
    small = b.mul(x, b.fma(z, polynomial(b, z, tables.ERF), 2.0 / math.sqrt(math.pi)))
    a = b.min(b.abs(x), 6.0)  # erf(6) rounds to 1
    u = b.div(b.const(1.0, x.dtype), b.fma(a, 0.5, 1.0))
    tail = b.mul(b.exp(b.neg(b.mul(a, a))), polynomial(b, u, tables.ERFC))
    large = b.copysign(b.sub(b.const(1.0, x.dtype), tail), x)
    return b.select(b.cmp("le", b.abs(x), 1.0), small, large)


# ---- circular functions --------------------------------------------------------------------------


def _reduce(b: ScalarBuilder, a: Scalar) -> tuple[Scalar, Scalar]:
    """Split a = k pi/2 + r into r and k mod 4, both of the float type; a >= 0.

    r is in [-pi/4, pi/4], a little more where k pi/2 is large. Exact to rounding while k has some
    bits less than the type's precision; beyond that the phase is lost, r stays in range.
    """
    k = b.round_even(b.mul(a, 2.0 / math.pi))
    r = a
    for part in _of(tables.HALF_PI, a):
        r = b.fma(k, -part, r)
    r = b.max(b.min(r, 0.9), -0.9)
    return r, b.sub(k, b.mul(b.floor(b.mul(k, 0.25)), 4.0))


def _odd_sign(b: ScalarBuilder, found: Scalar, x: Scalar) -> Scalar:
    """Return f(x) of an odd function from f(|x|); f(0) keeps the sign."""
    signed = b.select(b.cmp("lt", x, 0.0), b.neg(found), found)
    return b.select(b.cmp("eq", x, 0.0), x, signed)


def _sin_cos(b: ScalarBuilder, r: Scalar) -> tuple[Scalar, Scalar]:
    z = b.mul(r, r)
    cos_r = b.fma(b.mul(z, z), polynomial(b, z, _of(tables.COS, r)), b.fma(z, -0.5, 1.0))
    return odd(b, r, tables.SIN), cos_r


def sin(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Compute by the quadrant of |x| and put the sign back; NaN at infinities."""
    r, quadrant = _reduce(b, b.abs(x))
    s, c = _sin_cos(b, r)
    odd_one = b.or_(b.cmp("eq", quadrant, 1.0), b.cmp("eq", quadrant, 3.0))
    found = b.select(odd_one, c, s)
    found = b.select(b.cmp("ge", quadrant, 2.0), b.neg(found), found)
    return _odd_sign(b, found, x)


def cos(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Return cos of radians, reduced to a quadrant."""
    r, quadrant = _reduce(b, b.abs(x))
    s, c = _sin_cos(b, r)
    odd_one = b.or_(b.cmp("eq", quadrant, 1.0), b.cmp("eq", quadrant, 3.0))
    found = b.select(odd_one, s, c)
    minus = b.or_(b.cmp("eq", quadrant, 1.0), b.cmp("eq", quadrant, 2.0))
    return b.select(minus, b.neg(found), found)


def tan(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin r / cos r, or -cos r / sin r in odd quadrants."""
    r, quadrant = _reduce(b, b.abs(x))
    s, c = _sin_cos(b, r)
    odd_one = b.or_(b.cmp("eq", quadrant, 1.0), b.cmp("eq", quadrant, 3.0))
    found = b.div(b.select(odd_one, b.neg(c), s), b.select(odd_one, s, c))
    return _odd_sign(b, found, x)


def _asin_parts(b: ScalarBuilder, a: Scalar) -> tuple[Scalar, Scalar]:
    """asin(s), and whether a > 1/2: there s = sqrt((1 - a) / 2), else s = a."""
    large = b.cmp("gt", a, 0.5)
    half = b.mul(b.sub(b.const(1.0, a.dtype), a), 0.5)
    return odd(b, b.select(large, b.sqrt(half), a), tables.ASIN), large


def asin(b: ScalarBuilder, x: Scalar) -> Scalar:
    """asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2; NaN outside [-1, 1]."""
    p, large = _asin_parts(b, b.abs(x))
    return b.copysign(b.select(large, b.fma(p, -2.0, math.pi / 2), p), x)


def acos(b: ScalarBuilder, x: Scalar) -> Scalar:
    """2 asin(sqrt((1 - a) / 2)), its complement, or pi/2 - asin(x); NaN outside [-1, 1]."""
    p, large = _asin_parts(b, b.abs(x))
    twice = b.add(p, p)
    pi = b.const(math.pi, x.dtype)
    far = b.select(b.cmp("lt", x, 0.0), b.sub(pi, twice), twice)
    near = b.sub(b.const(math.pi / 2, x.dtype), b.copysign(p, x))
    return b.select(large, far, near)


def atan(b: ScalarBuilder, x: Scalar) -> Scalar:
    """atan(a) = c + atan(t), t in [-tan(pi/8), tan(pi/8)], by one division."""
    a = b.abs(x)
    steep = b.cmp("gt", a, math.tan(3 * math.pi / 8))
    middle = b.cmp("gt", a, math.tan(math.pi / 8))
    top = b.select(steep, b.const(-1.0, x.dtype), b.select(middle, b.sub(a, 1.0), a))
    one = b.const(1.0, x.dtype)
    bottom = b.select(steep, a, b.select(middle, b.add(a, 1.0), one))
    quarter = b.const(math.pi / 4, x.dtype)
    base = b.select(steep, b.const(math.pi / 2, x.dtype), b.select(middle, quarter, 0.0))
    return b.copysign(b.add(base, odd(b, b.div(top, bottom), tables.ATAN)), x)


# ---- powers and remainders -----------------------------------------------------------------------


def power(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Return C's pow. f32 is computed in f64, so that the product with the exponent is accurate."""
    if not is_f64(x):
        f64 = dtypes.DOUBLE
        return b.cast(power(b, b.cast(x, f64), b.cast(y, f64)), x.dtype)
    a = b.abs(x)
    one = b.const(1.0, x.dtype)
    found = b.exp(b.mul(y, b.log(a)))
    # for 0 and inf the sign of y decides, whatever the logarithm is
    growing = b.cmp("gt", y, 0.0)
    zero = b.select(growing, b.const(0.0, x.dtype), INF)
    endless = b.select(growing, b.const(INF, x.dtype), 0.0)
    found = b.select(b.cmp("eq", a, 0.0), zero, found)
    found = b.select(b.cmp("eq", a, INF), endless, found)
    whole = b.cmp("eq", b.floor(y), y)
    half = b.mul(y, 0.5)
    odd_y = b.and_(whole, b.cmp("ne", b.floor(half), half))
    found = b.select(odd_y, b.copysign(found, x), found)
    negative = b.and_(b.cmp("lt", x, 0.0), b.cmp("lt", a, INF))
    found = b.select(b.and_(negative, b.not_(whole)), b.const(NAN, x.dtype), found)
    found = b.select(b.or_(b.is_nan(x), b.is_nan(y)), b.add(x, y), found)
    unit = b.or_(b.cmp("eq", y, 0.0), b.cmp("eq", x, 1.0))
    unit = b.or_(unit, b.and_(b.cmp("eq", x, -1.0), b.is_inf(y)))
    return b.select(unit, one, found)


def integer_power(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Compute a wrapping x^y by squaring. A negative y gives 0, except for x = 1 and -1."""
    dtype = x.dtype
    one = b.const(1, dtype)
    found, square = one, x
    bits = dtype.bits - (1 if dtype.is_signed else 0)
    for bit in range(bits):
        taken = b.cmp("ne", b.and_(b.shr(y, bit), 1), 0)
        found = b.select(taken, b.mul(found, square), found)
        if bit + 1 < bits:
            square = b.mul(square, square)
    if dtype.is_unsigned:
        return found
    odd_y = b.cmp("ne", b.and_(y, 1), 0)
    minus_one = b.select(odd_y, b.const(-1, dtype), one)
    inverse = b.select(b.cmp("eq", x, -1), minus_one, 0)
    inverse = b.select(b.cmp("eq", x, 1), one, inverse)
    return b.select(b.cmp("lt", y, 0), inverse, found)


def _safe_divisor(b: ScalarBuilder, y: Scalar) -> Scalar:
    """Return y, or 1 for divisors that would trap (0, and -1 for the smallest dividend)."""
    trap = b.cmp("eq", y, 0)
    if y.dtype.is_signed:
        trap = b.or_(trap, b.cmp("eq", y, -1))
    return b.select(trap, b.const(1, y.dtype), y)


def integer_divide(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Divide towards zero; x / 0 is 0, the smallest by -1 wraps to itself."""
    found = b.div(x, _safe_divisor(b, y))
    if x.dtype.is_signed:
        found = b.select(b.cmp("eq", y, -1), b.neg(x), found)
    return b.select(b.cmp("eq", y, 0), b.const(0, x.dtype), found)


def fmod(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder with the sign of x; integers by 0 give 0, floats NaN."""
    if not x.dtype.is_float:
        found = b.rem(x, _safe_divisor(b, y))
        return b.select(b.cmp("eq", y, 0), b.const(0, x.dtype), found)
    if not is_f64(x):
        return b.rem(x, y)
    # Each step is exact and reduces the quotient by 53 bits: three reach 2^159. A step may subtract
    # once too often, hence the corrections. The target's own f64 remainder is a library call, which
    # is not available.
    a, m = b.abs(x), b.abs(y)
    r = a
    for _ in range(3):
        r = b.fma(b.neg(b.trunc(b.div(r, m))), m, r)
    r = b.select(b.cmp("lt", r, 0.0), b.add(r, m), r)
    r = b.select(b.cmp("ge", r, m), b.sub(r, m), r)
    finite = b.cmp("lt", a, INF)
    r = b.select(b.and_(b.cmp("eq", m, INF), finite), a, r)
    return b.copysign(r, x)


def modulo(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder with the sign of y; integers by 0 give 0, floats NaN."""
    r = fmod(b, x, y)
    if x.dtype.is_unsigned:
        return r
    zero = b.const(0, x.dtype)
    differ = b.xor(b.cmp("lt", r, zero), b.cmp("lt", y, zero))
    found = b.select(b.and_(b.cmp("ne", r, zero), differ), b.add(r, y), r)
    if x.dtype.is_float:
        found = b.select(b.cmp("eq", r, zero), b.copysign(r, y), found)
    return found


# ---- conversions ---------------------------------------------------------------------------------


def to_integer(b: ScalarBuilder, x: Scalar, dtype: DType) -> Scalar:
    """Return a float truncated toward zero and saturated; NaN gives 0."""
    low, high = int(dtype.lowest()), int(dtype.highest())
    if dtype.bits < 32 and x.dtype.bits >= 32 and not dtype.is_bool:
        # both limits are exact in a float; an ordered comparison keeps the first for NaN
        found = b.select(b.cmp("gt", x, float(low)), x, float(low))
        found = b.select(b.cmp("lt", found, float(high)), found, float(high))
        if low:
            found = b.select(b.is_nan(x), 0.0, found)
        return b.cast(b.cast(found, dtypes.INT32), dtype)
    over = b.cmp("ge", x, float(high + 1))  # a power of two: exact in every float type
    under = b.cmp("lt", x, float(low))
    safe = b.and_(b.cmp("ge", x, float(low)), b.cmp("lt", x, float(high + 1)))
    found = b.cast(b.select(safe, x, 0.0), dtype)
    found = b.select(over, b.const(high, dtype), found)
    return b.select(under, b.const(low, dtype), found)


def to_float(b: ScalarBuilder, x: Scalar, dtype: DType) -> Scalar:
    """Round a float to `dtype`. Finite values saturate, in f8 types infinities too."""
    if dtype.size >= x.dtype.size:
        return b.cast(x, dtype)
    top = finite_max(dtype)
    limited = b.max(b.min(x, top), -top)
    if dtype.size > 1:
        limited = b.select(b.is_inf(x), x, limited)
    return b.cast(limited, dtype)


def to_bf16(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Round an f32 to bf16 on its bits, in f32; infinite from halfway beyond the largest on.

    Compilers that compute bf16 in f32 drop a conversion to bf16 and back.
    """
    bits = b.bitcast(x, dtypes.UINT32)
    odd = b.and_(b.shr(bits, 16), 1)
    nearest = b.and_(b.add(bits, b.add(odd, 0x7FFF)), 0xFFFF0000)
    return b.select(b.is_nan(x), x, b.bitcast(nearest, dtypes.FLOAT))


def finite_max(dtype: DType) -> float:
    """Return the largest finite value of a float type."""
    return float(dtypes.float_info(dtype.np).max)

"""Torch functions in which torch.onnx overflows, loses digits, or rounds quotients differently.

Each takes its operator's own arguments, and returns NotImplemented if torch.onnx is correct.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import wraps
from typing import Any


def _in_f32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of tensors to compute 16-bit floats in f32; numbers have torch's float
    type.
    """

    @wraps(function)
    def computed(*given: Any) -> Any:
        torch = _torch()
        kind = given[0].dtype if len(given) == 1 else torch.result_type(*given)
        if not kind.is_floating_point:
            kind = torch.get_default_dtype()
        wide = kind if kind.itemsize > 2 else torch.float32
        return function(*(_as(x, wide) for x in given)).to(kind)

    return computed


@_in_f32
def log1p(x: Any) -> Any:
    """Return log(1 + x) = 2 atanh(x / (2 + x)), accurate near 0."""
    torch = _torch()
    return torch.where(x.abs() < 0.5, 2 * (x / (2 + x)).atanh(), (1 + x).log())


@_in_f32
def expm1(x: Any) -> Any:
    """Return exp(x) - 1 = 2 sinh(x / 2) exp(x / 2), accurate near 0."""
    half = x / 2
    return _torch().where(x.abs() < 1, 2 * half.sinh() * half.exp(), x.exp() - 1)


@_in_f32
def log_sigmoid(x: Any) -> Any:
    """Return log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|)), which never overflows."""
    return x.clamp(max=0) - log1p((-x.abs()).exp())


@_in_f32
def log_of_sum(x: Any, y: Any) -> Any:
    """Return logaddexp from the larger operand, so that nothing overflows."""
    return _joined(x, y, lambda below: log1p(below.exp()))


@_in_f32
def log2_of_sum(x: Any, y: Any) -> Any:
    """Return logaddexp2 from the larger operand, so that nothing overflows."""
    return _joined(x, y, lambda below: log1p(below.exp2()) / math.log(2))


def _joined(x: Any, y: Any, rest: Callable[[Any], Any]) -> Any:
    torch = _torch()
    # the difference of equal infinities is NaN
    below = torch.where(x == y, 0.0, -(x - y).abs())
    return torch.maximum(x, y) + rest(below.to(x.dtype))


def running_log_of_sum(x: Any, dim: int) -> Any:
    """Return logcumsumexp, each relative to the largest element so far."""
    if x.ndim == 0:
        return x.clone()
    torch = _torch()
    x = x.movedim(dim, -1)
    place = torch.arange(x.shape[-1])
    seen = place <= place.unsqueeze(-1)
    found = torch.where(seen, x.unsqueeze(-2), -math.inf).logsumexp(-1)
    return found.movedim(-1, dim)


@_in_f32
def angle_of(y: Any, x: Any) -> Any:
    """Return atan2(y, x) from the quotient that is at most 1, then by quadrants."""
    torch = _torch()
    tall, wide = y.abs(), x.abs()
    least, most = torch.minimum(tall, wide), torch.maximum(tall, wide)
    # 0 for two zeros, 1 for two infinities
    ratio = torch.where(least == most, torch.where(most == 0, most, most / most), least / most)
    ratio = torch.where(least.isinf(), 1.0, ratio)
    found = ratio.atan()
    found = torch.where(tall > wide, math.pi / 2 - found, found)
    found = torch.where(torch.signbit(x), math.pi - found, found)
    return torch.where(torch.signbit(y), -found, found)


@_in_f32
def sine_over_angle(x: Any) -> Any:
    """Return sin(pi x) / (pi x), and 1 of 0."""
    angle = x * math.pi
    return _torch().where(x == 0, 1.0, angle.sin() / angle)


def blended(x: Any, end: Any, weight: Any) -> Any:
    """Return lerp of 16-bit floats from f32: the distance of two numbers may be infinite in f16."""
    torch = _torch()
    if not x.is_floating_point() or x.element_size() > 2:
        return NotImplemented
    wide = (_as(v, torch.float32) if isinstance(v, torch.Tensor) else v for v in (x, end, weight))
    return torch.lerp(*wide).to(x.dtype)


def true_of_integers(x: Any) -> Any:
    """Return true for every integer, as isfinite does: ONNX tests floats alone."""
    torch = _torch()
    inexact = x.is_floating_point() or x.is_complex()
    return NotImplemented if inexact else torch.ones_like(x, dtype=torch.bool)


def false_of_integers(x: Any) -> Any:
    """Return false for every integer, as isnan and isinf do: ONNX tests floats alone."""
    found = true_of_integers(x)
    return found if found is NotImplemented else found.logical_not()


def remainder(x: Any, y: Any) -> Any:
    """Return the remainder of x, with the sign of y: floats by an exact fmod."""
    torch = _torch()
    kind = torch.result_type(x, y)
    if not kind.is_floating_point:
        return NotImplemented
    x, y = (_as(v, kind) for v in (x, y))
    left = x.fmod(y)
    return torch.where(_opposed(left, y), left + y, left)


def quotient(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    """Return x / y, rounded: floats by an exact fmod, integers without floats."""
    torch = _torch()
    kind = torch.result_type(x, y)
    if rounding_mode is None:
        return NotImplemented
    x, y = (_as(v, kind) for v in (x, y))
    if not kind.is_floating_point:
        if rounding_mode == "floor":
            return torch.floor_divide(x, y)
        return torch.ops.prims.div(*torch.broadcast_tensors(x, y))
    if rounding_mode == "trunc":
        return NotImplemented
    return _floor_of(x, y)


def floored_quotient(x: Any, y: Any) -> Any:
    """Return the floor of x / y."""
    torch = _torch()
    kind = torch.result_type(x, y)
    if kind.is_floating_point:
        return _floor_of(*(_as(v, kind) for v in (x, y)))
    if all(getattr(v, "dtype", kind) == kind for v in (x, y)):
        return NotImplemented
    return torch.floor_divide(*(_as(v, kind) for v in (x, y)))


def _floor_of(x: Any, y: Any) -> Any:
    """Return the floor of the exact quotient: a rounded quotient may be the next integer."""
    torch = _torch()
    left = x.fmod(y)
    found = (x - left) / y
    found = torch.where(_opposed(left, y), found - 1, found)
    down = found.floor()
    down = torch.where(found - down > 0.5, down + 1, down)
    plain = x / y
    down = torch.where(found == 0, torch.copysign(torch.zeros_like(plain), plain), down)
    return torch.where(y == 0, plain, down)


def _opposed(left: Any, y: Any) -> Any:
    return (left != 0) & ((left < 0) != (y < 0))


def angle(x: Any) -> Any:
    """Return 0 or pi of real numbers, and NaN of NaN; of integers in torch's default type."""
    torch = _torch()
    if x.is_complex():
        return NotImplemented
    wide = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return torch.where(wide.isnan(), wide, torch.where(wide < 0, math.pi, 0.0).to(wide.dtype))


def magnitude(x: Any) -> Any:
    """Return |x| in its own type; torch.onnx returns f32 for 16-bit floats."""
    if not x.is_floating_point() or x.element_size() > 2:
        return NotImplemented
    return x.float().abs().to(x.dtype)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1, and 0 for NaN."""
    torch = _torch()
    if not x.is_floating_point():
        return NotImplemented
    return torch.where(x > 0, 1.0, torch.where(x < 0, -1.0, 0.0)).to(x.dtype)


def step(x: Any, values: Any) -> Any:
    """Return 0 below 0 and for NaN, `values` at 0, 1 above."""
    return _torch().where(x == 0, values, (x > 0).to(x.dtype))


def log2(x: Any) -> Any:
    """Return the logarithm to base 2, exact for powers of 2."""
    return _logarithm(x, 2)


def log10(x: Any) -> Any:
    """Return the logarithm to base 10, exact for powers of 10."""
    return _logarithm(x, 10)


def _logarithm(x: Any, base: int) -> Any:
    """Return a logarithm computed in f64: an f32 quotient can fall below integers."""
    torch = _torch()
    kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    found = x.to(torch.float64).log() / math.log(base)
    whole = found.round()
    # f64 has the same fault, to a lesser degree
    return torch.where((found - whole).abs() < 1e-14 * whole.abs(), whole, found).to(kind)


def shifted_left(x: Any, y: Any) -> Any:
    """Return x << y: 0 for shifts of at least the width."""
    return _shifted(x, y, left=True)


def shifted_right(x: Any, y: Any) -> Any:
    """Return x >> y; for shifts of at least the width -1 for negative numbers, else 0."""
    return _shifted(x, y, left=False)


def _shifted(x: Any, y: Any, *, left: bool) -> Any:
    """Return a shift as a multiplication or division; torch.onnx always returns a signed type."""
    torch = _torch()
    kind = torch.result_type(x, y)
    bits = torch.iinfo(kind).bits
    if isinstance(y, int) and 0 <= y < bits - 1 and kind.is_signed:
        return NotImplemented
    x, y = (_as(v, torch.int64) for v in (x, y))
    if left:
        found = x * _power_of_two(y.clamp(0, 63))
        return torch.where((y < 0) | (y >= bits), 0, found).to(kind)
    found = torch.floor_divide(x, _power_of_two(y.clamp(0, 62)))
    beyond = (y < 0) | (y >= bits - int(kind.is_signed))
    return torch.where(beyond, torch.where(x < 0, -1, 0), found).to(kind)


def _power_of_two(y: Any) -> Any:
    """Return 2^y of integers from 0 to 63, bit by bit of y."""
    torch = _torch()
    found = torch.ones_like(y)
    for k in range(6):
        found = torch.where(y.bitwise_and(1 << k) != 0, found * (1 << (1 << k)), found)
    return found


def mean(x: Any, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return a mean in its own type; torch.onnx converts the quotient instead."""
    return NotImplemented if dtype in (None, x.dtype) else x.to(dtype).mean(dim, keepdim)


def total(x: Any, *dims: Any, dtype: Any = None, **named: Any) -> Any:
    """Return a sum; 16-bit floats keep their type, where torch.onnx returns f32."""
    return reduced_in_f32("sum", x, *dims, dtype=dtype, **named)


def running_total(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return cumulative sums of 16-bit floats in their type; torch.onnx returns f32."""
    return reduced_in_f32("cumsum", x, dim, dtype=dtype)


def reduced_in_f32(name: str, x: Any, *dims: Any, dtype: Any = None, **named: Any) -> Any:
    """Return a reduction that is computed in f32 and rounded once; NotImplemented for wider
    types.
    """
    torch = _torch()
    kind = dtype or x.dtype
    if not kind.is_floating_point or kind.itemsize > 2:
        return NotImplemented
    return getattr(torch, name)(x.to(kind).to(torch.float32), *dims, **named).to(kind)


def rounded(x: Any, *, decimals: int = 0) -> Any:
    """Return x rounded to decimals: multiplying by a power of ten is exact, by its inverse not."""
    if decimals == 0 or not x.is_floating_point():
        return x.round()
    power = 10.0 ** abs(decimals)
    return (x * power).round() / power if decimals > 0 else (x / power).round() * power


def _as(x: Any, kind: Any) -> Any:
    """Return a tensor or a number in a type; numbers do not become constants of the trace."""
    torch = _torch()
    return x.to(kind) if isinstance(x, torch.Tensor) else torch.full((), x, dtype=kind)


def _torch() -> Any:
    return importlib.import_module("torch")  # already imported: the program is torch's

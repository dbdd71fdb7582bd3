"""Conversions between element types: 8-bit floats, and the types narrower than a byte."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DOUBLE, FLOAT, INT32, INT64, UINT32
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.subbyte_types import BY_ONNX, Narrow
from mgx_mlir.frontends.helpers import compare, convert, greater_equal, number
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

# Magnitude from which rounding to the type overflows, and whether this value itself does. It is
# half a step above the largest number; ties go to the even neighbour.
_F8_LIMITS = {"fp8e4m3fn": 464.0, "fp8e5m2": 61440.0, "fp8e4m3fnuz": 248.0, "fp8e5m2fnuz": 61440.0}
_TIE_OVERFLOWS = {"fp8e4m3fn": False, "fp8e5m2": True, "fp8e4m3fnuz": True, "fp8e5m2fnuz": True}


def cast(
    b: Builder, node: Node, x: Value, to: int, saturate: bool = True, round_mode: str = "up"
) -> Value:
    """ONNX's Cast to the element type of number `to`."""
    have, kind = node.kind(x), BY_ONNX.get(to)
    if kind is None:
        out = cast_to(b, x, cast_number(to), saturate)
        return b.identity(x) if out is x and have else out  # another type with the same storage
    if have == to:
        return x
    return node.mark(to_narrow(b, x, kind, saturate, round_mode), to)


def cast_to(b: Builder, x: Value, dtype: dtypes.DType, saturate: bool) -> Value:
    """ONNX's Cast: to 8-bit floats out-of-range values become the largest, or inf or NaN."""
    source = b.dtype(x)
    if source is dtype:
        return x
    if not (dtype.is_float and dtype.size == 1):
        return convert(b, x, dtype)
    if not source.is_float or source.size == 1:
        x = b.convert(x, target_type=dtypes.FLOAT)
    largest = float(np.array(_largest(dtype), np.float64))
    clipped = b.clip(x, number(b, -largest, x), number(b, largest, x))
    if saturate:
        return b.convert(clipped, target_type=dtype)
    limit = _F8_LIMITS[dtype.short]
    over = (
        greater_equal(b, b.abs(x), limit)
        if _TIE_OVERFLOWS[dtype.short]
        else compare(b, "greater", b.abs(x), limit)
    )
    if dtype.has_infinity:
        low, high = (b.literal(np.array(v, dtype.np)) for v in (-np.inf, np.inf))
        beyond = b.where(compare(b, "less", x, 0), low, high)
    else:
        beyond = b.literal(np.array(np.nan, dtype.np))
    return b.where(over, beyond, b.convert(clipped, target_type=dtype))


def _largest(dtype: dtypes.DType) -> float:
    return float(ml_dtypes.finfo(dtype.np).max)


def to_narrow(
    b: Builder, x: Value, kind: Narrow, saturate: bool = True, round_mode: str = "up"
) -> Value:
    """Return `x` as values of a narrow type, in its storage type."""
    if kind.is_integer:
        return _to_integer(b, x, kind)
    if kind.mantissa:
        return _to_float(b, x, kind)
    return _to_exponent(b, x, saturate, round_mode)


def _to_integer(b: Builder, x: Value, kind: Narrow) -> Value:
    """Return the lowest bits of the integer part; NaN and infinities give 0."""
    whole = INT32
    if b.dtype(x).is_float:
        x = x if b.dtype(x) is DOUBLE else convert(b, x, FLOAT)
        whole = INT64 if b.dtype(x) is DOUBLE else INT32
        # floats above are multiples of 2**8 or more; a conversion would saturate
        held = compare(b, "less", b.abs(x), -float(whole.lowest()))
        x = b.where(held, x, number(b, 0, x))
    low = b.bitwise_and(convert(b, x, whole), (1 << kind.bits) - 1)
    if kind.held.is_signed:
        low = b.where(compare(b, "greater", low, kind.high), b.sub(low, 1 << kind.bits), low)
    return convert(b, low, kind.held)


def _to_float(b: Builder, x: Value, kind: Narrow) -> Value:
    """Return the nearest number, ties to even; larger magnitudes give the largest number, NaN gives
    0.

    A number between 2**e and 2**(e+1) is a multiple of 2**(e - mantissa), smaller ones of the
    step of the smallest normal number.
    """
    x = x if b.dtype(x) is DOUBLE else convert(b, x, FLOAT)
    size = b.min(b.abs(x), kind.top)
    step: Any = number(b, 2.0 ** (kind.least - kind.mantissa), x)
    for e in range(kind.least + 1, kind.most + 1):
        step = b.where(
            greater_equal(b, size, 2.0**e), number(b, 2.0 ** (e - kind.mantissa), x), step
        )
    found = b.mul(b.nearbyint(b.div(size, step)), step)
    found = b.where(compare(b, "less", x, 0), b.neg(found), found)
    found = b.where(b.convert(b.isnan(x), target_type=dtypes.BOOL), number(b, 0, x), found)
    return convert(b, found, kind.held)


def _to_exponent(b: Builder, x: Value, saturate: bool, round_mode: str) -> Value:
    """Return a power of two (float8e8m0), from the exponent and the fraction of the bits of an
    f32.

    Outside of [2**-127, 2**127] the result is the nearer end, or NaN without `saturate`. For
    negative numbers, which ONNX leaves undefined, it is the lower end, as in onnxruntime 1.32.
    """
    if round_mode not in ("up", "down", "nearest"):
        raise ModelError(f"attribute 'round_mode' expected up, down or nearest, got '{round_mode}'")
    bits = b.bit_cast(convert(b, x, FLOAT), target_type=UINT32)
    size = b.bitwise_and(bits, 0x7FFFFFFF)
    exponent, fraction = b.div(size, 1 << 23), b.bitwise_and(size, 0x7FFFFF)
    # 2**-127 is no normal f32: its leading bit is the first of the fraction
    normal = compare(b, "greater", exponent, 0)
    fraction = b.where(normal, fraction, b.mul(b.bitwise_and(size, 0x3FFFFF), 2))
    if round_mode != "down":
        least = 0x400000 if round_mode == "nearest" else 1
        exponent = b.add(exponent, convert(b, greater_equal(b, fraction, least), UINT32))
    below = b.logical_or(compare(b, "less", size, 1 << 22), compare(b, "greater", bits, 0x7FFFFFFF))
    beyond = b.logical_and(compare(b, "greater", size, 0xFE << 23), b.not_(below))
    exponent = b.where(below, 0 if saturate else 0xFF, exponent)
    exponent = b.where(beyond, 0xFE if saturate else 0xFF, exponent)
    exponent = b.where(compare(b, "greater", size, 0xFF << 23), 0xFF, exponent)
    found = b.where(compare(b, "equal", exponent, 0), 1 << 22, b.mul(exponent, 1 << 23))
    not_a_number = compare(b, "equal", exponent, 0xFF)
    found = b.where(not_a_number, b.literal(np.array(0x7FC00000, np.uint32)), found)
    return b.bit_cast(found, target_type=FLOAT)

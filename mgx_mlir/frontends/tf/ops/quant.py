"""Quantisation, real and simulated."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes

from mgx_mlir.core.dtypes import FLOAT, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import compare, convert, number, single
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def _fake(b: Builder, x: Value, low: Value, high: Value, bits: int, narrow: bool) -> Value:
    """Return x quantised to 2^bits steps of a range, which is shifted so that 0 is a step."""
    if not 2 <= bits <= 16:
        raise ModelError(f"num_bits expected 2 to 16, got {bits}")
    first, last = float(narrow), float(2**bits - 1)
    scale = b.div(b.sub(high, low), last - first)
    nothing = compare(b, "equal", scale, 0)
    scale = b.where(nothing, number(b, 1, scale), scale)
    zero = b.sub(number(b, first, scale), b.div(low, scale))
    zero = b.max(b.min(b.floor(b.add(zero, 0.5)), last), first)
    bottom = b.mul(b.sub(number(b, first, scale), zero), scale)
    top = b.mul(b.sub(number(b, last, scale), zero), scale)
    steps = b.mul(b.sub(b.max(b.min(x, top), bottom), bottom), b.div(number(b, 1, scale), scale))
    found = b.add(b.mul(b.floor(b.add(steps, 0.5)), scale), bottom)
    return b.where(nothing, number(b, 0, x), found)


@tf_op("FakeQuantWithMinMaxArgs")
def fake_quant_args(
    b: Builder,
    node: Node,
    x: Value,
    *,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> Value:
    """Import FakeQuantWithMinMaxArgs: the range is an attribute."""
    return _fake(b, x, number(b, min, x), number(b, max, x), num_bits, narrow_range)


@tf_op("FakeQuantWithMinMaxVars")
def fake_quant_vars(
    b: Builder,
    node: Node,
    x: Value,
    low: Value,
    high: Value,
    *,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> Value:
    """Import FakeQuantWithMinMaxVars: the range is an operand."""
    return _fake(b, x, single(b, low, "min"), single(b, high, "max"), num_bits, narrow_range)


@tf_op("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_channels(
    b: Builder,
    node: Node,
    x: Value,
    low: Value,
    high: Value,
    *,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> Value:
    """Import FakeQuantWithMinMaxVarsPerChannel: a range for each channel."""
    return _fake(b, x, low, high, num_bits, narrow_range)


# ---- quantise and dequantise -------------------------------------------------------------------


def _rounding(mode: str) -> Callable[[Builder, Value], Value]:
    if mode == "HALF_TO_EVEN":
        return lambda b, x: b.nearbyint(x)
    if mode == "HALF_UP":
        return lambda b, x: b.floor(b.add(x, 0.5))
    if mode == "HALF_AWAY_FROM_ZERO":
        return lambda b, x: b.mul(b.floor(b.add(b.abs(x), 0.5)), b.sign(x))
    raise ModelError(f"attribute 'round_mode' has unknown value {mode}")


def _fitting(b: Builder, least: float, most: float, low: Value, high: Value) -> Value:
    """Return the largest scale with which both ends of the range fit into [least, most]."""
    far = number(b, float(ml_dtypes.finfo(b.dtype(low).np).max), low)

    def side(end: float, value: Value) -> Value:
        same = compare(b, "greater", b.mul(value, end), 0)
        return b.where(same, b.div(number(b, end, value), b.where(same, value, 1)), far)

    return b.min(side(least, low), side(most, high))


def _there_and_back(
    b: Builder,
    x: Value,
    low: Value,
    high: Value,
    bits: int,
    signed: bool,
    given: bool,
    mode: str,
    narrow: bool,
    axis: int,
) -> Value:
    if axis != -1:
        raise NotSupported("an axis of its own ranges")
    if not 1 <= bits <= 62:
        raise ModelError(f"num_bits expected 1 to 62, got {bits}")
    least = float(-(2 ** (bits - 1)) + narrow) if signed else 0.0
    most = float(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
    low, high = single(b, low, "input_min"), single(b, high, "input_max")
    if not given:
        axes = list(range(len(b.dims(x))))
        low = b.squeeze(b.reduce_min(x, axes=axes), axes=axes) if axes else x
        high = b.squeeze(b.reduce_max(x, axes=axes), axes=axes) if axes else x
    scale = _fitting(b, least, most, low, high)
    inverse = b.div(number(b, 1, scale), scale)
    if given:
        x = b.max(b.min(x, b.mul(inverse, most)), b.mul(inverse, least))
    return b.mul(_rounding(mode)(b, b.mul(x, scale)), inverse)


@tf_op("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(
    b: Builder,
    node: Node,
    x: Value,
    low: Value,
    high: Value,
    *,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
    axis: int = -1,
) -> Value:
    """Import QuantizeAndDequantizeV2 and V4: round to the steps of a quantised type."""
    return _there_and_back(
        b, x, low, high, num_bits, signed_input, range_given, round_mode, narrow_range, axis
    )


@tf_op("QuantizeAndDequantizeV3")
def quantize_and_dequantize_v3(
    b: Builder,
    node: Node,
    x: Value,
    low: Value,
    high: Value,
    bits: Value,
    *,
    signed_input: bool = True,
    range_given: bool = True,
    narrow_range: bool = False,
    axis: int = -1,
) -> Value:
    """Import QuantizeAndDequantizeV3, whose number of bits is an operand."""
    [count] = node.ints(bits, "num_bits")
    return _there_and_back(
        b, x, low, high, count, signed_input, range_given, "HALF_TO_EVEN", narrow_range, axis
    )


# ---- integers ----------------------------------------------------------------------------------


def _kind(found: DType, mode: str, axis: int) -> DType:
    if not found.is_integer or found.size > 2:
        raise NotSupported(f"quantised type {found.short}")
    if mode == "MIN_FIRST":
        raise NotSupported("mode MIN_FIRST")
    if mode not in ("MIN_COMBINED", "SCALED"):
        raise ModelError(f"attribute 'mode' has unknown value {mode}")
    if axis != -1:
        raise NotSupported("an axis of its own ranges")
    return found


@tf_op("QuantizeV2", outputs=("output", "output_min", "output_max"))
def quantize_v2(
    b: Builder,
    node: Node,
    x: Value,
    low: Value,
    high: Value,
    *,
    T: DType,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: int = -1,
    ensure_minimum_range: float = 0.01,
) -> Outputs:
    """Import QuantizeV2: x in steps of a range, widened to hold 0, which is returned as well."""
    kind = _kind(T, mode, axis)
    low, high = single(b, low, "min_range"), single(b, high, "max_range")
    bottom = b.min(low, 0)
    reach = b.max(b.max(b.abs(low), b.abs(high)), 1)
    top = b.max(b.max(high, b.add(bottom, b.mul(reach, ensure_minimum_range))), 0)
    least, most = float(kind.lowest()), float(kind.highest())
    if mode == "SCALED":
        least += narrow_range
        scale = _fitting(b, least, most, bottom, top)
        bottom, top = b.div(number(b, least, scale), scale), b.div(number(b, most, scale), scale)
        steps = _rounding(round_mode)(b, b.mul(b.max(b.min(x, top), bottom), scale))
    else:
        if narrow_range or round_mode != "HALF_AWAY_FROM_ZERO":
            raise NotSupported("narrow_range or round_mode in mode MIN_COMBINED")
        scale = b.div(number(b, most - least, top), b.sub(top, bottom))
        steps = b.mul(b.sub(b.max(b.min(x, top), bottom), bottom), scale)
        if kind.is_signed:
            steps = b.sub(steps, (most - least + 1) / 2)
        steps = _rounding(round_mode)(b, steps)
    return convert(b, b.max(b.min(steps, most), least), kind), bottom, top


@tf_op("Dequantize")
def dequantize(
    b: Builder,
    node: Node,
    x: Value,
    low: Value,
    high: Value,
    *,
    T: DType,
    mode: str = "MIN_COMBINED",
    narrow_range: bool = False,
    axis: int = -1,
    dtype: DType = FLOAT,
) -> Value:
    """Import Dequantize, in each of its modes."""
    kind = _kind(T, mode, axis)
    if b.dtype(x) is not kind:
        raise ModelError(f"expected {kind.short}, got {b.dtype(x).short}")
    low, high = single(b, low, "min_range"), single(b, high, "max_range")
    least, most = float(kind.lowest()), float(kind.highest())
    value = convert(b, x, FLOAT)
    if mode == "SCALED":
        scale = b.div(high, most)
        if kind.is_signed:
            scale = b.max(b.div(low, least + narrow_range), scale)
        return convert(b, b.mul(value, scale), dtype)
    if narrow_range:
        raise NotSupported("narrow_range in mode MIN_COMBINED")
    if kind.is_signed:
        value = b.add(value, (most - least + 1) / 2)
    scale = b.div(b.sub(high, low), most - least)
    return convert(b, b.add(b.mul(value, scale), low), dtype)

"""Casts, and operators on the bits of integers."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import BOOL, INT64, UINT8, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.helpers import compare, convert, known_extent, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def cast(b: Builder, x: Value, dtype: DType) -> Value:
    """Cast as C does, except that floats beyond an integer type saturate and NaN becomes 0."""
    source = b.dtype(x)
    if source is dtype:
        return x
    if dtype.is_float and dtype.size == 1:
        raise NotSupported("a cast to 8-bit floats")
    return convert(b, x, dtype)


@tf_op("Cast")
def cast_op(b: Builder, node: Node, x: Value, *, DstT: DType, Truncate: bool = False) -> Value:
    """Import Cast; refuse Truncate."""
    if Truncate:
        raise NotSupported("Truncate")
    return cast(b, x, DstT)


@tf_op("Bitcast")
def bitcast(b: Builder, node: Node, x: Value, *, type: DType) -> Value:
    """Import Bitcast: a wider type consumes the last axis, a narrower one adds an axis."""
    source, target = b.dtype(x), type
    if BOOL in (source, target):
        raise NotSupported("bool elements")
    if source.size == target.size:
        return b.bit_cast(x, target_type=target)
    many, one = (source, target) if source.size > target.size else (target, source)
    count, bits = many.size // one.size, one.bits
    word, part = _unsigned(many), _unsigned(one)
    factors = np.array([1 << (bits * i) for i in range(count)], word.np)
    if source is many:
        whole = unsqueeze(b, b.bit_cast(x, target_type=word), [len(b.dims(x))])
        shifted = b.div(whole, b.literal(factors))
        return b.bit_cast(convert(b, shifted, part), target_type=target)
    axis = len(b.dims(x)) - 1
    if axis < 0 or b.dims(x)[axis] not in (count, DYN):
        raise ModelError(f"the last dim expected {count} elements, got dims {show_dims(b.dims(x))}")
    x = known_extent(b, x, axis, count, "elements")
    pieces = convert(b, b.bit_cast(x, target_type=part), word)
    joined = b.reduce_sum(b.mul(pieces, b.literal(factors)), axes=[axis])
    return b.bit_cast(b.squeeze(joined, axes=[axis]), target_type=target)


def _unsigned(dtype: DType) -> DType:
    return dtypes.from_numpy(np.dtype(f"u{dtype.size}"))


@tf_op("BitwiseAnd")
def bitwise_and(b: Builder, node: Node, x: Value, y: Value) -> Value:
    return b.bitwise_and(x, y)


@tf_op("BitwiseOr")
def bitwise_or(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Return x | y = (x - (x & y)) + y, which never wraps."""
    return b.add(b.sub(x, b.bitwise_and(x, y)), y)


@tf_op("BitwiseXor")
def bitwise_xor(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """x ^ y = (x - (x & y)) + (y - (x & y))."""
    both = b.bitwise_and(x, y)
    return b.add(b.sub(x, both), b.sub(y, both))


@tf_op("Invert")
def invert(b: Builder, node: Node, x: Value) -> Value:
    """~x = (all bits set) - x."""
    dtype = b.dtype(x)
    ones = np.array(-1 if dtype.is_signed else dtype.highest(), dtype.np)
    return b.sub(b.literal(ones), x)


def _powers(b: Builder, x: Value, y: Value) -> Value:
    """Return 2 to the power of a shift within [0, bits); the last one of a signed type wraps."""
    dtype = b.dtype(x)
    table = np.array([1 << i for i in range(dtype.bits)], np.uint64).astype(dtype.np)
    count = b.max(b.min(convert(b, y, INT64), dtype.bits - 1), 0)
    return b.gather(b.literal(table), count, axis=0)


@tf_op("LeftShift")
def left_shift(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Import LeftShift by a product that wraps; shifts are clamped below the width."""
    return b.mul(x, _powers(b, x, y))


@tf_op("RightShift")
def right_shift(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Import RightShift: division by a power of 2, rounded down; for the largest shift the sign."""
    dtype = b.dtype(x)
    power = _powers(b, x, y)
    if dtype.is_unsigned:
        return b.div(x, power)
    found = b.div(b.sub(x, b.mod(x, power)), power)
    sign = b.where(compare(b, "less", x, 0), b.literal(np.array(-1, dtype.np)), 0)
    return b.where(compare(b, "less", power, 0), sign, found)


@tf_op("PopulationCount")
def population_count(b: Builder, node: Node, x: Value) -> Value:
    """Import PopulationCount, by a table of bytes."""
    dtype = b.dtype(x)
    word = _unsigned(dtype)
    whole = unsqueeze(b, b.bit_cast(x, target_type=word), [len(b.dims(x))])
    if dtype.size > 1:
        steps = b.literal(np.array([1 << (8 * i) for i in range(dtype.size)], word.np))
        whole = b.div(whole, steps)
    byte = convert(b, convert(b, whole, UINT8), INT64)
    table = np.array([i.bit_count() for i in range(256)], np.uint8)
    counts = b.gather(b.literal(table), byte, axis=0)
    axis = len(b.dims(x))
    return b.squeeze(b.reduce_sum(counts, axes=[axis]), axes=[axis])

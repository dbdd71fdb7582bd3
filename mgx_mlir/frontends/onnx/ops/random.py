"""Random numbers: the normal and uniform generators, Bernoulli, Multinomial, Dropout in training.

A number depends only on the node's seed and the element's index (a counter-based generator). So a
program needs no state, and every run draws the same numbers. Nodes without a seed derive one from
their name. Small tensors of a seeded node equal those of numpy's RandomState, which ONNX's
reference implementation uses.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core.dtypes import BOOL, DOUBLE, FLOAT, INT32, UINT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import Extent, known, scalar, times
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    greater_equal,
    number,
    require,
    single,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_DRAWN = 1 << 16  # most elements that are drawn while the model is read
_WORD = (1 << 64) - 1

# ---- a counter-based generator -------------------------------------------------------------------


def _key(seed: float | None, name: str, stream: int) -> int:
    """Return 64 odd, irregular bits of a seed, or of a name if there is no seed."""
    text = f"{name}" if seed is None else f"{float(seed)!r}"
    digest = hashlib.sha256(f"{stream} {text}".encode()).digest()
    return int.from_bytes(digest[:8], "little") | 1


def _words(b: Builder, count: Extent, key: int) -> Value:
    """Return `count` random 32-bit words in u64: the squares generator of Widynski, four rounds."""

    def constant(v: int) -> Value:
        return b.literal(np.array(v & _WORD, np.uint64))

    half = constant(1 << 32)

    def turned(v: Value) -> Value:  # swap the halves of a word
        return b.add(b.mul(v, half), b.div(v, half))

    place = convert(b, arange(b, count), UINT64)
    y = b.mul(b.add(place, constant(1)), constant(key))
    z = b.add(y, constant(key))
    x = turned(b.add(b.mul(y, y), y))
    x = turned(b.add(b.mul(x, x), z))
    x = turned(b.add(b.mul(x, x), y))
    return b.div(b.add(b.mul(x, x), z), half)


def _unit(b: Builder, count: Extent, key: int, dtype: DType) -> Value:
    """Return `count` uniform numbers of [0, 1), with as many bits as the type holds exactly."""
    words = _words(b, count, key)
    if dtype is DOUBLE:
        low = _words(b, count, key ^ 0x5DEECE66D0)
        high = b.mul(convert(b, words, DOUBLE), 2.0**-32)
        kept = b.div(low, b.literal(np.array(1 << 12, np.uint64)))
        return b.add(high, b.mul(convert(b, kept, DOUBLE), 2.0**-52))
    kept = b.div(words, b.literal(np.array(1 << 8, np.uint64)))
    return b.mul(convert(b, kept, FLOAT), 2.0**-24)


class _Shape:
    """Dims of the drawn tensor: static, or values at run time."""

    def __init__(self, b: Builder, dims: Sequence[int], like: Value | None = None) -> None:
        self.b, self.dims, self.like = b, list(dims), like
        if any(d < 0 and d != DYN for d in dims):
            raise ModelError(f"shape {list(dims)} is negative")

    @property
    def static(self) -> bool:
        return DYN not in self.dims

    @property
    def count(self) -> Extent:
        """Return the number of elements."""
        if self.static:
            return math.prod(self.dims)
        total: Extent = 1
        for i, d in enumerate(self.dims):
            size = (
                d
                if d != DYN
                else known(
                    self.b,
                    self.b.gather(self.b.shape(self.like), self.b.literal(np.array(i)), axis=0),
                )
            )
            total = times(self.b, total, size)
        return scalar(self.b, total)

    def shaped(self, flat: Value) -> Value:
        """Reshape a vector of as many elements."""
        if self.static and 0 in self.dims:  # in a reshape, 0 would copy a dim
            return self.b.literal(np.zeros(self.dims, self.b.dtype(flat).np))
        if self.static:
            return self.b.reshape(flat, dims=self.dims)
        return self.b.reshape(flat, self.b.shape(self.like), allowzero=True)


def _like(b: Builder, x: Value) -> _Shape:
    return _Shape(b, b.dims(x), x)


Draw = Callable[[np.random.RandomState, list[int]], np.ndarray]


def _drawn(b: Builder, shape: _Shape, seed: float | None, draw: Draw, dtype: DType) -> Value | None:
    """Return numpy's numbers for a seed; None without a seed or for many elements."""
    if seed is None or not shape.static or math.prod(shape.dims) > _DRAWN:
        return None
    state = np.random.RandomState(int(seed) & 0xFFFFFFFF)
    return b.literal(np.asarray(draw(state, shape.dims)).astype(dtype.np))


def uniform(b: Builder, node: Node, shape: _Shape, seed: float | None, dtype: DType) -> Value:
    """Return uniform numbers of [0, 1) in f32, or in f64 for that type."""
    kind = DOUBLE if dtype is DOUBLE else FLOAT
    found = _drawn(b, shape, seed, lambda s, dims: s.uniform(size=dims), DOUBLE)
    if found is not None:
        return found
    return shape.shaped(_unit(b, shape.count, _key(seed, node.name, 0), kind))


def normal(b: Builder, node: Node, shape: _Shape, seed: float | None, dtype: DType) -> Value:
    """Return normal numbers of mean 0 and deviation 1, by Box and Muller."""
    kind = DOUBLE if dtype is DOUBLE else FLOAT
    found = _drawn(b, shape, seed, lambda s, dims: s.normal(size=dims), DOUBLE)
    if found is not None:
        return found
    first = _unit(b, shape.count, _key(seed, node.name, 1), kind)
    second = _unit(b, shape.count, _key(seed, node.name, 2), kind)
    # 1 - u is never 0
    radius = b.sqrt(b.mul(b.log(b.sub(number(b, 1, first), first)), -2))
    return shape.shaped(b.mul(radius, b.cos(b.mul(second, 2 * math.pi))))


# ---- generators ----------------------------------------------------------------------------------


def _between(b: Builder, u: Value, low: float, high: float, dtype: DType) -> Value:
    return convert(b, b.add(b.mul(u, high - low), low), dtype)


@onnx_op("RandomUniform", since=1)
def random_uniform(
    b: Builder,
    node: Node,
    *,
    shape: Sequence[int],
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Value:
    """Import RandomUniform."""
    kind = cast_number(dtype)
    return _between(b, uniform(b, node, _Shape(b, shape), seed, kind), low, high, kind)


@onnx_op("RandomUniformLike", since=1)
def random_uniform_like(
    b: Builder,
    node: Node,
    x: Value,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Value:
    """Import RandomUniformLike: the dims of x, and its type unless `dtype` is given."""
    kind = b.dtype(x) if dtype is None else cast_number(dtype)
    return _between(b, uniform(b, node, _like(b, x), seed, kind), low, high, kind)


def _spread(b: Builder, z: Value, mean: float, scale: float, dtype: DType) -> Value:
    return convert(b, b.add(b.mul(z, scale), mean), dtype)


@onnx_op("RandomNormal", since=1)
def random_normal(
    b: Builder,
    node: Node,
    *,
    shape: Sequence[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Import RandomNormal."""
    kind = cast_number(dtype)
    return _spread(b, normal(b, node, _Shape(b, shape), seed, kind), mean, scale, kind)


@onnx_op("RandomNormalLike", since=1)
def random_normal_like(
    b: Builder,
    node: Node,
    x: Value,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Import RandomNormalLike: the dims of x, and its type unless `dtype` is given."""
    kind = b.dtype(x) if dtype is None else cast_number(dtype)
    return _spread(b, normal(b, node, _like(b, x), seed, kind), mean, scale, kind)


@onnx_op("Bernoulli", since=15)
def bernoulli(
    b: Builder, node: Node, x: Value, *, dtype: int | None = None, seed: float | None = None
) -> Value:
    """Import Bernoulli: 1 with the probability in each element."""
    kind = b.dtype(x) if dtype is None else cast_number(dtype)
    draws = uniform(b, node, _like(b, x), seed, b.dtype(x))
    return convert(b, compare(b, "less", draws, convert(b, x, b.dtype(draws))), kind)


@onnx_op("Multinomial", since=7)
def multinomial(
    b: Builder,
    node: Node,
    x: Value,
    *,
    dtype: int = 6,
    sample_size: int = 1,
    seed: float | None = None,
) -> Value:
    """Import Multinomial: categories by unnormalised log-probabilities, where running sums exceed a
    uniform number.
    """
    if len(b.dims(x)) != 2:
        raise ModelError(f"expected rank 2, got {len(b.dims(x))}")
    if sample_size < 1:
        raise ModelError(f"sample_size expected 1 or more, got {sample_size}")
    kind = DOUBLE if b.dtype(x) is DOUBLE else FLOAT
    x = convert(b, x, kind)
    weights = b.exp(b.sub(x, b.reduce_max(x, axes=[1])))
    sums = b.prefix_scan_sum(weights, axis=1)
    rows = b.dims(x)[0]
    if rows == DYN:
        like = b.broadcast_with_dims(
            b.literal(np.zeros((1, 1), kind.np)),
            b.concat([b.shape(x, 0, 1), b.ints([sample_size])], axis=0),
        )
        shape = _Shape(b, [DYN, sample_size], like)
    else:
        shape = _Shape(b, [rows, sample_size])
    draws = convert(b, uniform(b, node, shape, seed, kind), kind)
    return convert(b, b.multinomial(sums, draws, dtype=INT32), cast_number(dtype))


# ---- Dropout in training -------------------------------------------------------------------------


def dropped_in_training(
    b: Builder, node: Node, x: Value, ratio: Value | None, training: Value, seed: float | None
) -> tuple[Value, Value]:
    """Return x with elements dropped and the others scaled up, and the mask, if `training`
    holds.
    """
    draws = uniform(b, node, _like(b, x), seed, b.dtype(x))
    dtype, kind = b.dtype(x), b.dtype(draws)
    share = number(b, 0.5, draws) if ratio is None else convert(b, single(b, ratio, "ratio"), kind)
    none = b.not_(convert(b, single(b, training, "training_mode"), BOOL))
    if ratio is not None:
        inside = b.logical_and(greater_equal(b, share, 0), compare(b, "less", share, 1))
        share = require(b, share, b.logical_or(inside, none), "a ratio in [0, 1)")
    kept = b.logical_or(greater_equal(b, draws, share), none)
    wide = x if dtype.size >= 4 else convert(b, x, FLOAT)
    factor = b.div(number(b, 1, draws), b.sub(number(b, 1, draws), share))
    enlarged = b.mul(wide, convert(b, factor, b.dtype(wide)))
    found = b.where(kept, b.where(none, wide, enlarged), number(b, 0, wide))
    return convert(b, found, dtype), kept


__all__ = ["dropped_in_training", "normal", "uniform"]

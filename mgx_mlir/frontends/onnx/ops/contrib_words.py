"""com.microsoft: words, positions and hashes."""

from __future__ import annotations

import math

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64, UINT32, UINT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.extents import divided
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    number,
    reshape,
    single,
    slice_,
    squeeze,
    static_dims,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.attention import split_heads
from mgx_mlir.frontends.onnx.ops.contrib_fused import of_columns
from mgx_mlir.frontends.onnx.ops.elementwise import bitwise_xor
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"

# ---- words and positions -----------------------------------------------------------------------


@onnx_op("WordConvEmbedding", domain=MS)
def word_conv_embedding(
    b: Builder,
    node: Node,
    words: Value,
    w: Value,
    bias: Value,
    table: Value,
    *,
    char_embedding_size: int = 0,
    conv_window_size: int = 0,
    embedding_size: int = 0,
) -> Value:
    """Import WordConvEmbedding: max over windows of tanh(conv(characters) + bias); a word ends at
    its first 0.

    A word shorter than the window has only the window at its first character.
    """
    filters, _, window, _ = static_dims(b, w, "W")
    rank = len(b.dims(words))
    if rank != 2:  # onnxruntime 1.32 accepts other ranks, and reads the first elements as a matrix
        raise ModelError(f"Sequence expected dims {{words, characters}}, got rank {rank}")
    length = b.dims(words)[rank - 1]
    if length == DYN or length < window:
        raise NotSupported(f"words of length {length} with windows of {window}")
    count = length - window + 1
    words = within(b, words, "Sequence", 0, Dim(table, 0, "the number of characters"))
    characters = b.gather(table, words, axis=0)  # {.., length, size}
    limits.table((count, window), "places")
    places = np.arange(count)[:, None] + np.arange(window)[None, :]
    windows = b.gather(characters, b.literal(places), axis=rank - 1)  # {.., count, window, size}
    size = b.dims(table)[1]
    flat = b.reshape(windows, dims=[*[0] * rank, window * size])
    matrix = transpose(b, reshape(b, w, [filters, window * size]), [1, 0])
    value = b.tanh(b.add(matmul(b, flat, matrix), bias))
    filled = compare(b, "greater", words, 0)
    seen = _running_all(b, filled, rank - 1)
    total = b.reduce_sum(convert(b, seen, INT32), axes=[rank - 1])  # {.., 1}
    last = b.max(b.sub(total, window - 1), 1)
    inside = compare(b, "less", arange(b, count, INT32), last)
    value = b.where(unsqueeze(b, inside, [rank]), value, -2.0)  # less than any tanh
    best = squeeze(b, b.reduce_max(value, axes=[rank - 1]), [rank - 1])
    return b.where(compare(b, "greater", total, 0), best, 0)


def _running_all(b: Builder, flags: Value, axis: int) -> Value:
    """Return whether an element and all before it are set."""
    missing = b.prefix_scan_sum(convert(b, b.not_(flags), INT32), axis=axis)
    return compare(b, "equal", missing, 0)


@onnx_op("NGramRepeatBlock", domain=MS)
def ngram_repeat_block(
    b: Builder, node: Node, ids: Value, scores: Value, *, ngram_size: int
) -> Value:
    """Import NGramRepeatBlock: -inf for every token that would repeat an n-gram of the sequence."""
    batch, length = b.dims(ids)
    if DYN in (batch, length):
        raise NotSupported("dynamic dims")
    if ngram_size < 1:
        raise ModelError(f"ngram_size expected 1 or more, got {ngram_size}")
    vocabulary = b.dims(scores)[1]
    # negative numbers are no tokens
    ids = within(b, ids, "input_ids", -(1 << 31), Dim(scores, 1, "the vocabulary"))
    starts = length - ngram_size + 1
    if starts < 1:
        return scores
    limits.parts(ngram_size, "tokens of an n-gram")
    limits.table((batch, starts), "places", 1)
    same = b.literal(np.ones((batch, starts), bool))
    for i in range(ngram_size - 1):  # the tokens before the last, at each position and at the end
        here = slice_(b, ids, [1], [i], [i + starts])
        end = slice_(b, ids, [1], [starts + i], [starts + i + 1])
        same = b.logical_and(same, compare(b, "equal", here, end))
    token = slice_(b, ids, [1], [ngram_size - 1], [length])  # token that followed
    hits = compare(b, "equal", unsqueeze(b, token, [2]), arange(b, vocabulary, b.dtype(ids)))
    hits = b.logical_and(hits, unsqueeze(b, same, [2]))
    blocked = squeeze(b, b.reduce_max(convert(b, hits, INT32), axes=[1]), [1])
    return b.where(compare(b, "greater", blocked, 0), number(b, -math.inf, scores), scores)


@onnx_op("RelativePositionBias", domain=MS)
def relative_position_bias(
    b: Builder,
    node: Node,
    table: Value,
    query_length: Value,
    key_length: Value,
    *,
    is_bidirectional: int = 0,
    max_distance: int,
) -> Value:
    """Import RelativePositionBias: T5's distance buckets, exact at first, then logarithmic up to
    the largest.

    The table's dims are (buckets, heads), but its elements are stored head by head (onnxruntime's
    pull request 14149). The biases of a head are a row of `2 * max_distance + 1` numbers by
    distance, from which each query reads those of its keys. So the lengths may be dynamic.
    """
    buckets, heads = b.dims(table)
    if DYN in (buckets, heads):
        raise NotSupported("a table of a size that is known at run time only")
    exact = buckets // (4 if is_bidirectional else 2)
    if not 0 < exact < max_distance:
        raise ModelError(f"max_distance {max_distance} does not fit a table of {buckets} rows")
    limits.table((2 * max_distance + 1,), "distances")
    apart = np.arange(-max_distance, max_distance + 1)
    index = _buckets(apart, buckets, bool(is_bidirectional), max_distance)
    lengths = (query_length, "query_length"), (key_length, "key_length")
    rows, columns = (
        arange(b, within(b, single(b, convert(b, n, INT64), what), what, 0)) for n, what in lengths
    )
    known = b.const(rows), b.const(columns)
    if known[0] is not None and known[1] is not None:
        limits.table((known[0].size, known[1].size), "distances")
    distance = b.sub(unsqueeze(b, columns, [0]), unsqueeze(b, rows, [1]))
    low, high = (number(b, n, distance) for n in (-max_distance, max_distance))
    place = b.add(b.clip(distance, low, high), high)
    row = b.gather(reshape(b, table, [heads, buckets]), b.literal(index), axis=1)
    return unsqueeze(b, b.gather(row, place, axis=1), [0])


def _buckets(distance: np.ndarray, buckets: int, both: bool, most: int) -> np.ndarray:
    """Return the bucket of each distance from a query to a key; `both` covers later keys too."""
    count, base = buckets, np.zeros_like(distance)
    if both:
        count = buckets // 2
        base = np.where(distance > 0, count, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = count // 2
    ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact))
    ratio = ratio / np.float32(math.log(most / exact)) * np.float32(count - exact)
    far = np.minimum(exact + ratio.astype(np.int64), count - 1)
    return base + np.where(distance < exact, distance, far)


@onnx_op("GatedRelativePositionBias", domain=MS)
def gated_relative_position_bias(
    b: Builder,
    node: Node,
    query: Value,
    query_bias: Value,
    positions: Value,
    weight: Value,
    bias: Value,
    eco_a: Value,
    token_offset: Value | None = None,
    *,
    num_heads: int,
) -> Value:
    """Import GatedRelativePositionBias: (u (r a - 1) + 2) positions, with the gates u and r of each
    query.
    """
    if token_offset is not None:
        raise NotSupported("token_offset")
    total = b.add(query, of_columns(b, query_bias, query))
    heads = split_heads(b, total, num_heads)
    both = b.add(matmul(b, heads, weight), bias)
    both = divided(b, both, 2, "gates", "the columns of the weight")
    gates = b.sigmoid(b.reduce_sum(both, axes=[4]))  # {batch, heads, length, 2, 1}
    u, r = (squeeze(b, slice_(b, gates, [3], [i], [i + 1]), [4]) for i in (0, 1))
    factor = b.add(b.mul(u, b.sub(b.mul(r, eco_a), 1)), 2)
    return b.mul(factor, positions)


# ---- MurmurHash3 -------------------------------------------------------------------------------


def _times(b: Builder, x: Value, factor: int) -> Value:
    """Return the low 32 bits of a product, x held in u64."""
    return b.mod(b.mul(x, b.literal(factor, UINT64)), b.literal(1 << 32, UINT64))


def _rotated(b: Builder, x: Value, bits: int) -> Value:
    """Return the 32 bits of x, held in u64, rotated to the left."""
    high = b.mul(x, b.literal(1 << bits, UINT64))
    limit = b.literal(1 << 32, UINT64)
    return b.add(b.mod(high, limit), b.div(high, limit))


def _plus(b: Builder, x: Value, term: int) -> Value:
    return b.mod(b.add(x, b.literal(term, UINT64)), b.literal(1 << 32, UINT64))


@onnx_op("MurmurHash3", domain=MS)
def murmur_hash_3(b: Builder, node: Node, x: Value, *, positive: int = 1, seed: int = 0) -> Value:
    """Return the 32-bit hash of each element's bytes, in arithmetic of u64."""
    dtype = b.dtype(x)
    if dtype.size not in (4, 8):
        raise NotSupported(f"elements of {dtype}")
    if dtype.size == 8:
        if dtype.is_float:
            x = b.bit_cast(x, target_type=INT64)
        whole = convert(b, x, UINT64)
        limit = b.literal(1 << 32, UINT64)
        words = [b.mod(whole, limit), b.div(whole, limit)]
    else:
        if dtype.is_float:
            x = b.bit_cast(x, target_type=INT32)
        words = [convert(b, convert(b, x, UINT32), UINT64)]
    h = b.mul(convert(b, b.mul(words[0], b.literal(0, UINT64)), UINT64), b.literal(0, UINT64))
    h = b.add(h, b.literal(seed % (1 << 32), UINT64))

    def mixed(x: Value, y: Value) -> Value:
        return bitwise_xor(b, node, x, y)

    def shifted(x: Value, bits: int) -> Value:
        return b.div(x, b.literal(1 << bits, UINT64))

    for word in words:
        k = _times(b, _rotated(b, _times(b, word, 0xCC9E2D51), 15), 0x1B873593)
        h = _plus(b, _times(b, _rotated(b, mixed(h, k), 13), 5), 0xE6546B64)
    h = mixed(h, b.literal(dtype.size, UINT64))
    for bits, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = mixed(h, shifted(h, bits))
        h = h if factor == 1 else _times(b, h, factor)
    out = convert(b, h, UINT32)
    return out if positive == 1 else convert(b, out, INT32)  # onnxruntime's meaning

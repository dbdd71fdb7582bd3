"""com.microsoft: Attention and MultiHeadAttention, with masks, bias, past and present.

`attend` is shared by all attention operators; it builds the form that fusion recognises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, product, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, Sum, within
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    convert,
    extent,
    less_equal,
    number,
    same_extent,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.attention import join_heads, of_heads, split_heads
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


@dataclass
class Scores:
    """Steps from q k^T to softmax. `added` and `seen` broadcast to the scores' dims."""

    scale: float
    softcap: float = 0.0
    added: list[Value] = field(default_factory=list)  # biases, in the type of the scores
    seen: Value | None = None  # visibility of keys; where False, the score is the lowest number
    sure: bool = False  # each query sees a key, so that the score is -inf where `seen` is False
    sink: Value | None = None  # additional score of every row, without a value


@dataclass
class Attended:
    """The result {batch, heads, length, size}, and the scores before and after softmax."""

    out: Value
    raw: Value
    weights: Value


def attend(b: Builder, q: Value, k: Value, v: Value, s: Scores) -> Attended:
    """softmax(cap(q k^T scale) + added, hidden where not seen) v, of {batch, heads, length, size}.

    16-bit floats are computed in f32 from the operands to the result.
    """
    dtype, kind = b.dtype(q), wide(b.dtype(q))
    q, k, v = (convert(b, t, kind) for t in (q, k, v))
    scores = matmul(b, q, transpose(b, k, [0, 1, 3, 2]))
    if s.scale != 1:
        scores = b.mul(scores, s.scale)
    if s.softcap > 0:
        scores = b.mul(b.tanh(b.div(scores, s.softcap)), s.softcap)
    for term in s.added:
        scores = b.add(scores, convert(b, term, kind))
    if s.seen is not None:
        hidden = -math.inf if s.sure else lowest(kind.np)
        scores = b.where(s.seen, scores, number(b, hidden, scores))
    weights = b.softmax(scores, axis=3) if s.sink is None else _sunk(b, scores, s.sink)
    return Attended(convert(b, matmul(b, weights, v), dtype), scores, weights)


def lowest(dtype: np.dtype) -> float:
    """Return the lowest finite number of a float type."""
    return float(np.finfo(dtype).min)


def _sunk(b: Builder, scores: Value, sink: Value) -> Value:
    """Return the softmax of rows with `sink` {heads} as one more score, whose weight is dropped."""
    sink = b.reshape(convert(b, sink, b.dtype(scores)), dims=[1, b.dims(sink)[0], 1, 1])
    top = b.max(b.reduce_max(scores, axes=[3]), sink)
    powers = b.exp(b.sub(scores, top))
    return b.div(powers, b.add(b.reduce_sum(powers, axes=[3]), b.exp(b.sub(sink, top))))


def default_scale(b: Builder, q: Value, scale: float | None) -> float:
    """Return the scale of a node; an absent one, and 0, stand for 1 / sqrt(head size)."""
    size = b.dims(q)[3]
    if scale:
        return scale
    if size == DYN:
        raise NotSupported("a head size that is known at run time only")
    return 1 / math.sqrt(size)


def causal(b: Builder, q: Value, k: Value) -> Value:
    """Return whether query i may see key j; the last query sees every key."""
    rows, columns = b.dims(q)[2], b.dims(k)[2]
    if DYN not in (rows, columns):
        limits.table((rows, columns), "a mask", 1)
        return b.literal(np.arange(columns)[None, :] <= np.arange(rows)[:, None] + columns - rows)
    before = b.sub(extent(b, k, 2), extent(b, q, 2))
    return less_equal(b, axis_range(b, k, 2), unsqueeze(b, b.add(axis_range(b, q, 2), before), [1]))


def causal_across(b: Builder, q: Value, k: Value, past: Value | None) -> Value:
    """Return whether query i may see key j of another sequence: j <= i + past length.

    The last query sees every key, as in onnxruntime 1.32.
    """
    rows, columns = b.dims(q)[2], b.dims(k)[2]
    before = 0 if past is None else b.dims(past)[2]
    if DYN not in (rows, columns, before):
        limits.table((rows, columns), "a mask", 1)
        seen = np.arange(columns)[None, :] <= np.arange(rows)[:, None] + before
        seen[-1:] = True
        return b.literal(seen)
    row = axis_range(b, q, 2)
    reach = row if past is None else b.add(row, extent(b, past, 2))
    last = compare(b, "equal", row, b.sub(extent(b, q, 2), 1))
    seen = less_equal(b, axis_range(b, k, 2), unsqueeze(b, reach, [1]))
    return b.logical_or(seen, unsqueeze(b, last, [1]))


def mask_bias(b: Builder, mask: Value, q: Value, k: Value, hidden: float, batch_of: Value) -> Value:
    """Return a mask of any form as a bias of the scores: 0, or `hidden` where it hides a key.

    Ranks 2 {batch, keys}, 3 {batch, queries, keys} and 4 {batch, 1, longest, longest} are 0 where
    they hide a key; of rank 4 only the last rows so far count. Rank 1 has the ends of the
    sequences, {batch}, optionally their starts, {2 batch}, or the offsets of packed sequences, {3
    batch + 2}.
    """
    rank, keys = len(b.dims(mask)), b.dims(k)[2]
    kind = wide(b.dtype(q))
    if rank == 1:
        seen = _between(b, mask, batch_of, k)
    else:
        if rank == 4:
            rows = b.dims(q)[2]
            if DYN in (rows, keys):
                raise NotSupported("a mask of rank 4 with dynamic lengths")
            mask = slice_(b, mask, [2, 3], [keys - rows, 0], [keys, keys])
        elif rank not in (2, 3):
            raise ModelError(f"a mask of rank {rank}")
        elif b.dims(mask)[-1] != keys and DYN not in (b.dims(mask)[-1], keys):
            raise ModelError(f"a mask of {b.dims(mask)[-1]} keys does not fit {keys}")
        axes = {2: [1, 2], 3: [1], 4: []}[rank]
        seen = compare(b, "greater", unsqueeze(b, mask, axes), 0)
    zero = b.literal(np.zeros((), kind.np))
    return b.where(seen, zero, b.literal(np.array(max(hidden, lowest(kind.np)), kind.np)))


def _between(b: Builder, mask: Value, x: Value, k: Value) -> Value:
    """Return whether key j lies between its sequence's start and end."""
    batch, count = b.dims(x)[0], b.dims(mask)[0]
    if DYN in (batch, count):
        if not b.probe.same(mask, 0, x, 0):
            raise NotSupported("a mask of rank 1 with a dynamic batch")
        batch = count
    if count == batch or (DYN not in (count, batch) and count == 2 * batch):
        keys = Dim(k, 2, "the number of keys", 1)
        mask = within(b, mask, "the lengths of a mask", 0, keys, computed=False)
    place = axis_range(b, k, 2, b.dtype(mask))
    ends = mask if count == batch else slice_(b, mask, [0], [0], [batch])
    seen = compare(b, "less", place, unsqueeze(b, ends, [1]))
    if count != DYN and count == 2 * batch and count != 0:
        starts = unsqueeze(b, slice_(b, mask, [0], [batch], [count]), [1])
        seen = b.logical_and(seen, b.not_(compare(b, "less", place, starts)))
    elif count not in (batch, 3 * batch + 2):
        raise ModelError(f"a mask of {count} elements does not fit a batch of {batch}")
    return unsqueeze(b, seen, [1, 2])


def cut_bias(b: Builder, bias: Value, sizes: Sequence[int]) -> list[Value]:
    """Split the common bias vector of query, key and value into three."""
    if DYN in sizes:
        raise NotSupported("a bias of hidden sizes that are known at run time only")
    ends = np.cumsum(sizes)
    return [
        slice_(b, bias, [0], [int(end) - size], [int(end)])
        for end, size in zip(ends, sizes, strict=True)
    ]


def written(b: Builder, past: Value, new: Value, length: Value) -> Value:
    """Return the buffer `past` with `new` rows written from row `length` (a scalar) on."""
    rows = b.dims(new)[2]
    if rows == DYN:
        raise NotSupported("a shared buffer with a dynamic number of new rows")
    free = Sum(1 - rows, ((past, 2, 1),), "the free rows of the cache")
    length = within(b, length, "past_sequence_length", 0, free, computed=False)
    last = b.add(b.reshape(convert(b, length, INT32), dims=[1]), rows - 1)
    batch = b.dims(past)[0]
    if batch == DYN:
        raise NotSupported("a shared buffer with a dynamic batch")
    return b.concat_past_present(new, b.multibroadcast(last, [batch]), past)


def of_beams(b: Builder, cache: Value, beams: Value, length: Value) -> Value:
    """Return a shared buffer in which each beam has the rows of the beam that it continues.

    `cache` is {batch beams, heads, rows, size}. `beams` {batch, beam, rows} has the source beam of
    each row below `length`; later rows are the beam's own.
    """
    batch, rows = b.dims(cache)[0], b.dims(cache)[2]
    width = b.dims(beams)[1]
    if DYN in (batch, rows, width) or b.dims(beams)[2] != rows:
        raise NotSupported("cache_indirection of dynamic dims, or of other rows than the cache's")
    limits.table((batch,), "beams")
    own = b.literal(np.arange(batch)[:, None])
    first = b.literal((np.arange(batch) // width * width)[:, None])
    given = b.add(b.reshape(convert(b, beams, INT64), dims=[batch, rows]), first)
    row = unsqueeze(b, arange(b, rows), [0])
    old = compare(b, "less", row, b.reshape(convert(b, length, INT64), dims=[1]))
    entry = b.where(old, given, own)
    index = b.concat([unsqueeze(b, v, [2]) for v in b.broadcast(entry, row)], axis=2)
    found = b.gathernd(b.transpose(cache, permutation=[0, 2, 1, 3]), index)
    return b.transpose(found, permutation=[0, 2, 1, 3])


def filled(b: Builder, k: Value, rows: int, length: Value) -> Value:
    """Return whether row j of a shared buffer is filled: j < length + rows, {keys}."""
    count = b.add(b.reshape(convert(b, length, INT64), dims=[]), rows)
    return compare(b, "less", axis_range(b, k, 2), count)


def causal_from(b: Builder, q: Value, k: Value, length: Value) -> Value:
    """Return whether query i, which is key length + i of a shared buffer, may see key j."""
    first = b.reshape(convert(b, length, INT64), dims=[])
    row = unsqueeze(b, b.add(axis_range(b, q, 2), first), [1])
    return less_equal(b, axis_range(b, k, 2), row)


# ---- Attention ---------------------------------------------------------------------------------


def split_qkv(
    b: Builder, packed: Value, sizes: Sequence[int], heads: int
) -> tuple[Value, Value, Value]:
    """Split {batch, length, q + k + v} into query, key and value, each {batch, heads, length,
    size}.
    """
    at, out = 0, []
    for size in sizes:
        part = slice_(b, packed, [2], [at], [at + size])
        out.append(split_heads(b, part, heads))
        at += size
    return out[0], out[1], out[2]


def hidden_sizes(total: int, given: Sequence[int] | None) -> list[int]:
    """Return the columns of query, key and value among `total`."""
    if total == DYN:
        raise NotSupported("a hidden size that is known at run time only")
    sizes = list(given) if given else [total // 3] * 3
    if len(sizes) != 3 or sum(sizes) != total or sizes[0] != sizes[1]:
        raise ModelError(f"qkv_hidden_sizes {sizes} do not fit {total} columns")
    return sizes


def self_attention(
    b: Builder,
    x: Value,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    past: Value | None,
    attention_bias: Value | None,
    past_length: Value | None,
    *,
    mask_filter_value: float,
    scale: float | None,
    unidirectional: int,
    share_buffer: int,
) -> tuple[Value, Value | None]:
    """Attend heads (made from `x`) to their past {2, batch, heads, length, size}.

    Return the result and the present cache.
    """
    scores = Scores(default_scale(b, q, scale))
    if past is not None:
        old = [squeeze(b, slice_(b, past, [0], [i], [i + 1]), [0]) for i in (0, 1)]
        if share_buffer:
            if past_length is None:
                raise ModelError("expected past_sequence_length with past_present_share_buffer")
            rows = b.dims(q)[2]
            k, v = (written(b, o, n, past_length) for o, n in zip(old, (k, v), strict=True))
            scores.seen = filled(b, k, rows, past_length)
            if unidirectional:
                scores.seen = causal_from(b, q, k, past_length)
        else:
            k, v = (b.concat([o, n], axis=2) for o, n in zip(old, (k, v), strict=True))
    elif share_buffer:
        raise NotSupported("past_present_share_buffer without a past")
    if mask is not None:
        scores.added.append(mask_bias(b, mask, q, k, mask_filter_value, x))
    if attention_bias is not None:
        scores.added.append(attention_bias)
    if unidirectional and scores.seen is None:
        scores.seen = causal(b, q, k)
    found = attend(b, q, k, v, scores)
    present = None
    if b.dims(k) == b.dims(v):
        present = b.concat([unsqueeze(b, t, [0]) for t in (k, v)], axis=0)
    return join_heads(b, found.out), present


@onnx_op("Attention", domain=MS)
def attention(
    b: Builder,
    node: Node,
    x: Value,
    weights: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    past: Value | None = None,
    attention_bias: Value | None = None,
    past_sequence_length: Value | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Outputs:
    """Import com.microsoft's Attention: one matmul makes query, key and value from the input."""
    if do_rotary:
        raise NotSupported("do_rotary")
    sizes = hidden_sizes(b.dims(weights)[1], qkv_hidden_sizes)
    packed = matmul(b, x, weights)
    if bias is not None:
        packed = b.add(packed, bias)
    q, k, v = split_qkv(b, packed, sizes, num_heads)
    return self_attention(
        b, x, q, k, v, mask, past, attention_bias, past_sequence_length, scale=scale,
        mask_filter_value=mask_filter_value, unidirectional=unidirectional,
        share_buffer=past_present_share_buffer,
    )  # fmt: skip


# ---- MultiHeadAttention ------------------------------------------------------------------------


def _unpacked(b: Builder, packed: Value, count: int) -> list[Value]:
    """Split {batch, length, heads, count, size} into `count` of {batch, heads, length, size}."""
    if b.dims(packed)[3] != count:
        raise ModelError(f"expected {count} packed tensors, got dims {show_dims(b.dims(packed))}")
    parts = [squeeze(b, slice_(b, packed, [3], [i], [i + 1]), [3]) for i in range(count)]
    return [transpose(b, p, [0, 2, 1, 3]) for p in parts]


def _plus(b: Builder, x: Value, bias: Value) -> Value:
    """Add a part of a bias to heads."""
    heads, size = b.dims(x)[1], b.dims(x)[3]
    return b.add(x, b.reshape(bias, dims=[heads, 1, size]))


def heads_of(
    b: Builder, query: Value, key: Value | None, value: Value | None, bias: Value | None, heads: int
) -> tuple[Value, Value, Value]:
    """Return query, key and value of every form as {batch, heads, length, size}, with bias added.

    Keys that are heads already are a cache, which includes its bias.
    """
    rank = len(b.dims(query))
    cached = False
    if rank == 5:
        q, k, v = _unpacked(b, query, 3)
    else:
        if rank != 3 or key is None:
            raise ModelError(f"expected a query of rank 3 and a key, got rank {rank}")
        q = split_heads(b, query, heads)
        key = same_extent(b, key, 0, query, 0, "keys with the batch of the queries")
        rank = len(b.dims(key))
        if rank == 5:
            k, v = _unpacked(b, key, 2)
        elif value is None:
            raise ModelError("expected a value with the key")
        else:
            cached = rank == 4
            k, v = (
                of_heads(b, t, heads, "keys and values")
                if len(b.dims(t)) == 4
                else split_heads(b, t, heads)
                for t in (key, value)
            )
    if bias is not None:
        columns = [product(b.dims(t)[1::2]) for t in (q, k, v)]
        parts = cut_bias(b, bias, columns)
        q = _plus(b, q, parts[0])
        if not cached:
            k, v = _plus(b, k, parts[1]), _plus(b, v, parts[2])
    return q, k, v


@onnx_op("MultiHeadAttention", domain=MS)
def multi_head_attention(
    b: Builder,
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    key_padding_mask: Value | None = None,
    attention_bias: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_sequence_length: Value | None = None,
    cache_indirection: Value | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Outputs:
    """Import MultiHeadAttention: softmax(q k^T scale + masks) v. A query sees all keys; with
    `unidirectional` keys up to its own position, and the last query all.
    """
    if cache_indirection is not None and (past_key is None or past_sequence_length is None):
        raise ModelError("expected past_key and past_sequence_length with cache_indirection")
    q, k, v = heads_of(b, query, key, value, bias, num_heads)
    new, scores = k, Scores(default_scale(b, q, scale))
    if (past_key is None) != (past_value is None):
        raise ModelError("past_key and past_value come together")
    if past_key is not None and past_value is not None:
        if past_sequence_length is None:
            k, v = b.concat([past_key, k], axis=2), b.concat([past_value, v], axis=2)
        else:
            rows = b.dims(q)[2]
            k = written(b, past_key, k, past_sequence_length)
            v = written(b, past_value, v, past_sequence_length)
            scores.seen = filled(b, k, rows, past_sequence_length)
            if unidirectional:
                scores.seen = causal_from(b, q, k, past_sequence_length)
    if key_padding_mask is not None:
        hidden = mask_bias(b, key_padding_mask, q, k, mask_filter_value, query)
        scores.added.append(hidden)
    if attention_bias is not None:
        scores.added.append(attention_bias)
    if unidirectional and scores.seen is None:
        own = b.probe.same(q, 2, new, 2)
        scores.seen = causal(b, q, k) if own else causal_across(b, q, k, past_key)
    keys, values = k, v
    if cache_indirection is not None and past_sequence_length is not None:
        keys, values = (of_beams(b, t, cache_indirection, past_sequence_length) for t in (k, v))
    found = attend(b, q, keys, values, scores)
    raw = convert(b, found.raw, b.dtype(q)) if node.wants(3) else None
    return join_heads(b, found.out), k, v, raw

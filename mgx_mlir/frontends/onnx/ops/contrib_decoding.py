"""com.microsoft: attention of one new token, of packed batches, and parts of recurrent models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.bounds import within
from mgx_mlir.frontends.helpers import (
    axis_range,
    compare,
    convert,
    reshape,
    slice_,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.activation import softplus_of
from mgx_mlir.frontends.onnx.ops.attention import join_heads
from mgx_mlir.frontends.onnx.ops.contrib_attention import (
    Scores,
    attend,
    default_scale,
    filled,
    heads_of,
    hidden_sizes,
    mask_bias,
    of_beams,
    written,
)
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


@onnx_op("DecoderMaskedMultiHeadAttention", domain=MS)
def decoder_masked_multi_head_attention(
    b: Builder,
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    mask: Value | None = None,
    attention_bias: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_sequence_length: Value | None = None,
    beam_width: Value | None = None,
    cache_indirection: Value | None = None,
    bias: Value | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
) -> Outputs:
    """MultiHeadAttention of one query per entry. Keys that come as heads are all there are."""
    if cache_indirection is not None and not past_present_share_buffer:
        raise ModelError("expected past_present_share_buffer with cache_indirection")
    if key is None:
        query, key, value = _thirds(b, query)
    q, k, v = heads_of(b, query, key, value, bias, num_heads)
    scores = Scores(default_scale(b, q, scale))
    crossed = len(b.dims(key)) == 4
    present: tuple[Any, Any] = (None, None)
    if not crossed and past_key is not None and past_value is not None:
        if past_present_share_buffer:
            if past_sequence_length is None:
                raise ModelError("expected past_sequence_length with past_present_share_buffer")
            k = written(b, past_key, k, past_sequence_length)
            v = written(b, past_value, v, past_sequence_length)
            scores.seen = filled(b, k, 1, past_sequence_length)
        else:
            k, v = b.concat([past_key, k], axis=2), b.concat([past_value, v], axis=2)
    if not crossed:
        present = k, v
        if cache_indirection is not None and past_sequence_length is not None:
            k, v = (of_beams(b, t, cache_indirection, past_sequence_length) for t in (k, v))
    if mask is not None:
        scores.added.append(mask_bias(b, mask, q, k, mask_filter_value, query))
    if attention_bias is not None:
        scores.added.append(attention_bias)
    found = attend(b, q, k, v, scores)
    raw = None
    if node.wants(3):
        raw = convert(b, found.raw, b.dtype(q))
    return join_heads(b, found.out), *present, raw


def _thirds(b: Builder, packed: Value) -> list[Value]:
    sizes = hidden_sizes(b.dims(packed)[2], None)
    size = sizes[0]
    return [slice_(b, packed, [2], [i * size], [(i + 1) * size]) for i in range(3)]


# ---- packed batches ----------------------------------------------------------------------------


def _restored(b: Builder, x: Value, offsets: Value) -> Value:
    """Scatter tokens {count, size} to their positions in {batch, length, size}; zeros elsewhere."""
    batch, length = b.dims(offsets)
    count, size = b.dims(x)
    if DYN in (batch, length, count, size):
        raise NotSupported("dynamic dims")
    offsets = within(b, offsets, "token_offset", 0, batch * length)
    place = slice_(b, reshape(b, convert(b, offsets, INT64), [batch * length]), [0], [0], [count])
    empty = zeros(b, (batch * length, size), b.dtype(x))
    full = b.scatternd_none(empty, unsqueeze(b, place, [1]), x)
    return reshape(b, full, [batch, length, size])


onnx_table({"RestorePadding": lambda b, x, token_offset: _restored(b, x, token_offset)}, domain=MS)


def _packed_attention(
    b: Builder,
    parts: Sequence[Value],
    heads: int,
    offsets: Value,
    ends: Value,
    attention_bias: Value | None,
    scale: float | None,
) -> Value:
    """Attend over packed tokens {count, size}: each sees those of its own sequence."""
    count = b.dims(parts[0])[0]
    padded = [_restored(b, p, offsets) for p in parts]
    q, k, v = heads_of(b, padded[0], padded[1], padded[2], None, heads)
    batch, length = b.dims(offsets)
    ends = within(b, ends, "cumulative_sequence_length", 0, count + 1)
    lengths = b.sub(slice_(b, ends, [0], [1], [batch + 1]), slice_(b, ends, [0], [0], [batch]))
    place = axis_range(b, k, 2, b.dtype(lengths))
    seen = compare(b, "less", place, unsqueeze(b, lengths, [1]))
    scores = Scores(default_scale(b, q, scale), seen=unsqueeze(b, seen, [1, 2]))
    if attention_bias is not None:
        scores.added.append(attention_bias)
    out = join_heads(b, attend(b, q, k, v, scores).out)
    rows = reshape(b, out, [batch * length, b.dims(out)[2]])
    place = slice_(b, reshape(b, convert(b, offsets, INT64), [batch * length]), [0], [0], [count])
    return b.gather(rows, place, axis=0)


@onnx_op("PackedAttention", domain=MS)
def packed_attention(
    b: Builder,
    node: Node,
    x: Value,
    weights: Value,
    bias: Value,
    token_offset: Value,
    ends: Value,
    attention_bias: Value | None = None,
    *,
    num_heads: int,
    qkv_hidden_sizes: Sequence[int] | None = None,
    scale: float = 0.0,
) -> Value:
    """Import PackedAttention: project packed tokens and attend within each sequence."""
    packed = b.add(matmul(b, x, weights), bias)
    at, parts = 0, []
    for size in hidden_sizes(b.dims(weights)[1], qkv_hidden_sizes):
        parts.append(slice_(b, packed, [1], [at], [at + size]))
        at += size
    return _packed_attention(b, parts, num_heads, token_offset, ends, attention_bias, scale)


@onnx_op("PackedMultiHeadAttention", domain=MS)
def packed_multi_head_attention(
    b: Builder,
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    token_offset: Value | None = None,
    ends: Value | None = None,
    attention_bias: Value | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
) -> Value:
    """Import PackedMultiHeadAttention: attend over packed tokens that are already projected."""
    if token_offset is None or ends is None:
        raise ModelError("expected token_offset and cumulative_sequence_length")
    if any(DYN in b.dims(t) for t in (query, key, value) if t is not None):
        raise NotSupported("dynamic dims")
    if len(b.dims(query)) == 4:  # {tokens, heads, 3, size}
        count, heads, _, size = b.dims(query)
        pieces = [slice_(b, query, [2], [i], [i + 1]) for i in range(3)]
        parts = [reshape(b, p, [count, heads * size]) for p in pieces]
    elif key is None or value is None:
        raise ModelError("expected key and value with a query of rank 2")
    else:
        parts = [query, key, value]
    if bias is not None:
        at = 0
        for i, p in enumerate(parts):
            size = b.dims(p)[1]
            parts[i] = b.add(p, slice_(b, bias, [0], [at], [at + size]))
            at += size
    return _packed_attention(b, parts, num_heads, token_offset, ends, attention_bias, scale)


# ---- parts of recurrent models -----------------------------------------------------------------


@onnx_op("LinearAttentionGate", domain=MS)
def linear_attention_gate(
    b: Builder, node: Node, a: Value, dt_bias: Value, decay_scale: Value, gate: Value | None = None
) -> Outputs:
    """decay_scale softplus(a + dt_bias), and sigmoid of the other input, in f32."""
    dtype = b.dtype(a)
    decay = b.mul(softplus_of(b, b.add(convert(b, a, FLOAT), dt_bias)), decay_scale)
    beta = None
    if node.wants(1):
        if gate is None:
            raise ModelError("expected input 'b' with the second output")
        beta = convert(b, b.sigmoid(convert(b, gate, FLOAT)), dtype)
    return convert(b, decay, dtype), beta

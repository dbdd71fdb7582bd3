"""Operators of the com.microsoft domain that onnxruntime's optimizer leaves in saved models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mgx_mlir.core.build import Builder
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.onnx.helpers import (
    Value,
    arange,
    compare,
    convert,
    extent,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.ops.attention import join_heads, rotary_embedding, split_heads
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.problems import NotSupported
from mgx_mlir.frontends.onnx.registry import onnx_op

MS = "com.microsoft"

# ---- attention ---------------------------------------------------------------------------------


@onnx_op("RotaryEmbedding", domain=MS)
def rotary(
    b: Builder,
    node: Any,
    x: Value,
    positions: Value,
    cos: Value,
    sin: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    """One position is the first of every row; else there is one per token."""
    if is_packed_batching or scale != 1:
        raise NotSupported("packed batches or a scale")
    dims = b.dims(x)
    if len(dims) == 3 and not num_heads:
        half = b.dims(cos)[1]
        if rotary_embedding_dim or dims[2] == DYN or half == DYN or dims[2] % (2 * half):
            raise ModelError("expected num_heads with a partial rotation")
        num_heads = dims[2] // (2 * half)
    if len(b.dims(positions)) == 1:
        axis = 1 if len(dims) == 3 else 2
        length = dims[axis]
        places = arange(b, extent(b, x, axis) if length == DYN else length)
        positions = unsqueeze(b, b.add(places, positions), [0])
    return rotary_embedding(
        b, node, x, cos, sin, positions, interleaved=interleaved, num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )  # fmt: skip


@onnx_op("MultiHeadAttention", domain=MS)
def multi_head_attention(
    b: Builder,
    node: Any,
    query: Value,
    key: Value = None,
    value: Value = None,
    bias: Value = None,
    key_padding_mask: Value = None,
    attention_bias: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    """softmax(q k^T scale + masks) v of inputs {batch, length, hidden}."""
    if key is None or value is None or len(b.dims(query)) != 3:
        raise NotSupported("packed or four-dimensional inputs")
    if bias is not None:
        query, key, value = _biased(b, query, key, value, bias)
    q = split_heads(b, query, num_heads)
    k = split_heads(b, key, num_heads) if len(b.dims(key)) == 3 else key
    v = split_heads(b, value, num_heads) if len(b.dims(value)) == 3 else value
    if past_key is not None:
        k, v = b.concat([past_key, k], axis=2), b.concat([past_value, v], axis=2)
    dtype, size = b.dtype(q), b.dims(q)[3]
    kind = wide(dtype)
    scores = matmul(
        b, convert(b, q, kind), b.transpose(convert(b, k, kind), permutation=[0, 1, 3, 2])
    )
    scores = b.mul(scores, scale or 1 / math.sqrt(size))
    if key_padding_mask is not None:
        if len(b.dims(key_padding_mask)) != 2:
            raise NotSupported("a key padding mask of rank other than 2")
        seen = compare(b, "greater", unsqueeze(b, key_padding_mask, [1, 2]), 0)
        hidden = b.literal(np.array(mask_filter_value, kind.np))
        scores = b.add(scores, b.where(seen, b.literal(np.zeros((), kind.np)), hidden))
    if attention_bias is not None:
        scores = b.add(scores, convert(b, attention_bias, kind))
    if unidirectional:
        rows, columns = b.dims(q)[2], b.dims(k)[2]
        if DYN in (rows, columns):
            raise NotSupported("unidirectional with dynamic lengths")
        ahead = np.arange(columns)[None, :] > np.arange(rows)[:, None] + columns - rows
        low = b.literal(np.array(np.finfo(np.float32).min, kind.np))
        scores = b.where(b.literal(ahead), low, scores)
    out = matmul(b, b.softmax(scores, axis=3), convert(b, v, kind))
    return join_heads(b, convert(b, out, dtype)), k, v


def _biased(
    b: Builder, query: Value, key: Value, value: Value, bias: Value
) -> tuple[Value, Value, Value]:
    """The one bias vector cut into those of query, key and value."""
    parts, at = [], 0
    for v in (query, key, value):
        if len(b.dims(v)) != 3:
            raise NotSupported("a bias of four-dimensional inputs")
        hidden = b.dims(v)[2]
        part = b.slice(bias, axes=[0], starts=[at], ends=[at + hidden])
        parts.append(b.add(v, part))
        at += hidden
    return parts[0], parts[1], parts[2]

"""Inference fast paths of torch.nn, decomposed to operators that torch.onnx knows.

In inference nn.TransformerEncoderLayer and nn.MultiheadAttention call one operator each (torch
2.13, aten/src/ATen/native/transformers).
"""

from __future__ import annotations

import importlib
from typing import Any

# dims of a mask: {queries, keys}, {batch, keys}, {batch, heads, queries, keys}
_SHAPES = {0: (1, 1, -2, -1), 1: (-2, 1, 1, -1)}


def encoder_layer(
    x: Any, width: int, heads: int, packed: Any, packed_bias: Any, projection: Any,
    projection_bias: Any, use_gelu: bool, norm_first: bool, epsilon: float, scale1: Any,
    shift1: Any, scale2: Any, shift2: Any, inner: Any, inner_bias: Any, outer: Any,
    outer_bias: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Return aten::_transformer_encoder_layer_fwd: attention, then two linear layers."""
    f = _functional()

    def attended(v: Any) -> Any:
        return attention(
            v, v, v, width, heads, packed, packed_bias, projection, projection_bias, mask, False,
            True, mask_type,
        )[0]  # fmt: skip

    def fed(v: Any) -> Any:
        v = f.linear(v, inner, inner_bias)
        return f.linear(f.gelu(v) if use_gelu else f.relu(v), outer, outer_bias)

    def first(v: Any) -> Any:
        return f.layer_norm(v, (width,), scale1, shift1, epsilon)

    def second(v: Any) -> Any:
        return f.layer_norm(v, (width,), scale2, shift2, epsilon)

    if norm_first:
        x = x + attended(first(x))
        return x + fed(second(x))
    x = first(x + attended(x))
    return second(x + fed(x))


def attention(
    query: Any, key: Any, value: Any, width: int, heads: int, packed: Any, packed_bias: Any,
    projection: Any, projection_bias: Any, mask: Any = None, need_weights: bool = True,
    average: bool = True, mask_type: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return aten::_native_multi_head_attention of {batch, length, width}.

    A nonzero mask element hides a key; the returned weights are empty unless requested.
    """
    torch, f = importlib.import_module("torch"), _functional()
    biases = (None,) * 3 if packed_bias is None else packed_bias.chunk(3)
    q, k, v = (
        f.linear(t, w, b).unflatten(-1, (heads, width // heads)).transpose(1, 2)
        for t, w, b in zip((query, key, value), packed.chunk(3), biases, strict=True)
    )
    hidden = None if mask is None else _spread(mask.to(torch.bool), mask_type)
    weights = query.new_empty(0)
    if need_weights:
        scores = torch.matmul(q * (width // heads) ** -0.5, k.transpose(-2, -1))
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = torch.softmax(scores, -1)
        out = torch.matmul(weights, v)
        weights = weights.mean(1) if average else weights
    else:
        seen = None if hidden is None else hidden.logical_not()
        out = f.scaled_dot_product_attention(q, k, v, seen)
    return f.linear(out.transpose(1, 2).flatten(2), projection, projection_bias), weights


def _spread(mask: Any, mask_type: int | None) -> Any:
    """Return a mask as {batch or 1, heads or 1, queries or 1, keys}."""
    shape = _SHAPES.get(mask_type) if mask_type is not None else None
    if shape is None:
        return mask
    return mask.view([n if n > 0 else mask.shape[n] for n in shape])


def _functional() -> Any:
    return importlib.import_module("torch.nn.functional")

"""Attention and rotary embedding of opset 23 on, in the form that fusion recognises."""

from __future__ import annotations

import math

import numpy as np

from mgx_mlir.core.dtypes import BOOL, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.extents import divided, extents, reshaped, times
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    concat,
    convert,
    extent,
    extent_as,
    greater_equal,
    known_extent,
    less_equal,
    number,
    require,
    same_extent,
    slice_,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.bodies import UseBody
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import gather_or
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

_FAR = 2**63 - 1  # slice bound beyond every element


def of_heads(b: Builder, x: Value, heads: int, what: str) -> Value:
    """Return `x` {batch, heads, length, size}, which has that many heads."""
    if b.dims(x)[1] not in (DYN, heads):
        raise ModelError(f"{what} of {b.dims(x)[1]} heads, expected {heads}")
    return known_extent(b, x, 1, heads, what)


def split_heads(b: Builder, x: Value, heads: int) -> Value:
    """{batch, length, heads * size} -> {batch, heads, length, size}."""
    split = divided(b, x, heads, "heads", "the hidden size")
    return b.transpose(split, permutation=[0, 2, 1, 3])


def join_heads(b: Builder, x: Value) -> Value:
    """{batch, heads, length, size} -> {batch, length, heads * size}."""
    _, heads, _, size = b.dims(x)
    moved = b.transpose(x, permutation=[0, 2, 1, 3])
    if DYN in (heads, size):
        own = extents(b, moved)
        return reshaped(b, moved, [*own[:2], times(b, own[2], own[3])])
    return b.reshape(moved, dims=[0, 0, heads * size])


def repeat_heads(b: Builder, x: Value, times: int) -> Value:
    """Return each head `times` in a row, for queries that share keys and values."""
    if times == 1:
        return x
    batch, heads, length, size = b.dims(x)
    if heads == DYN:
        raise NotSupported("shared key heads whose number is known at run time only")
    if DYN in (batch, length):
        shape = concat(b, [b.shape(x, 0, 2), b.ints([times]), b.shape(x, 2, 4)], 0)
        wide = b.broadcast_with_dims(unsqueeze(b, x, [2]), shape)
        if size != DYN:  # known dims are checked at import
            return b.reshape(wide, dims=[0, heads * times, -1, size])
        joined = concat(b, [b.shape(x, 0, 1), b.ints([heads * times]), b.shape(x, 2, 4)], 0)
        return b.reshape(wide, joined, allowzero=True)
    wide = b.multibroadcast(unsqueeze(b, x, [2]), [batch, heads, times, length, size])
    return b.reshape(wide, dims=[batch, heads * times, length, size])


def _causal(b: Builder, q: Value, k: Value, past: Value | None) -> Value:
    """Return whether query i may see key j: j <= i + past length."""
    rows, columns = b.dims(q)[2], b.dims(k)[2]
    before = 0 if past is None else b.dims(past)[2]
    if DYN not in (rows, columns, before):
        limits.table((rows, columns), "a mask", 1)
        return b.literal(np.arange(columns)[None, :] <= np.arange(rows)[:, None] + before)
    row = unsqueeze(b, axis_range(b, q, 2), [1])
    if past is not None:
        row = b.add(row, extent(b, past, 2))
    return less_equal(b, axis_range(b, k, 2), row)


@onnx_op("Attention", since=23)
def attention(
    b: Builder,
    node: Node,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    nonpad_kv_seqlen: Value | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> Outputs:
    """Import Attention: softmax(q k^T scale + mask) v; rare forms use ONNX's function body."""
    if nonpad_kv_seqlen is not None:
        keys = Dim(k, 2 if len(b.dims(k)) == 4 else 1, "the number of keys", 1)
        within(b, nonpad_kv_seqlen, "nonpad_kv_seqlen", 0, keys)
    if nonpad_kv_seqlen is not None or node.wants(3):
        raise UseBody
    pads_masks = node.opset >= 24  # before, a mask of one column holds for every key
    if left_window_size >= 0 or right_window_size >= 0:
        raise UseBody
    del qk_matmul_output_mode  # mode of an output that is not wanted
    rank = len(b.dims(q))
    if (past_key is None) != (past_value is None):
        raise ModelError("past_key and past_value come together")
    ranks = [len(b.dims(x)) for x in (q, k, v)]
    pasts = [len(b.dims(x)) for x in (past_key, past_value) if x is not None]
    if ranks != [rank] * 3 or rank not in (3, 4) or any(r != 4 for r in pasts):
        raise ModelError(f"expected q, k and v of rank 3 or 4 and pasts of 4, got {ranks + pasts}")
    if rank == 3:
        if q_num_heads is None or kv_num_heads is None:
            raise ModelError("expected q_num_heads and kv_num_heads with inputs of rank 3")
        q = split_heads(b, q, q_num_heads)
        k, v = split_heads(b, k, kv_num_heads), split_heads(b, v, kv_num_heads)
    k, v = (same_extent(b, t, 0, q, 0, "keys and values of the queries' batch") for t in (k, v))
    v = same_extent(b, v, 1, k, 1, "as many value heads as key heads")
    if past_key is not None:
        k = b.concat([past_key, k], axis=2)
        v = b.concat([past_value, v], axis=2)
    heads, kv_heads = b.probe.static(q, 1), b.probe.static(k, 1)
    if rank == 4:  # only the file may state the extent of a reshape
        heads, kv_heads = heads or node.stated_dim(0, 1), kv_heads or node.stated_dim(1, 1)
    keys, values = k, v
    if heads and kv_heads:
        if heads % kv_heads:
            raise ModelError(f"{heads} query heads cannot share {kv_heads} key heads")
        keys, values = (repeat_heads(b, t, heads // kv_heads) for t in (k, v))
    else:
        keys, values = (_shared_heads(b, t, q) for t in (k, v))
    dtype = b.dtype(q)
    size = b.dims(q)[3]
    if scale is None and size != DYN:
        scale = 1 / math.sqrt(size)
    if scale is None:
        factor = b.rsqrt(extent_as(b, q, 3, wide(dtype)))
    # 16-bit floats are computed in f32 from the operands to the result
    q, keys, values = (convert(b, t, wide(dtype)) for t in (q, keys, values))
    scores = matmul(b, q, b.transpose(keys, permutation=[0, 1, 3, 2]))
    if scale != 1:
        scores = b.mul(scores, factor if scale is None else scale)
    if softcap > 0:
        scores = b.mul(b.tanh(b.div(scores, softcap)), softcap)
    stated = wide(dtype) if softmax_precision is None else cast_number(softmax_precision)
    kind = stated if stated.size > b.dtype(scores).size else b.dtype(scores)
    if mask is not None:
        mask = _lengthened(b, mask, k, pads_masks)
    weights, hidden = _masked_softmax(b, scores, mask, past_key, q, k, is_causal, kind)
    out = matmul(b, convert(b, weights, b.dtype(values)), values)
    if hidden is not None:  # mask the result: between the matmuls the mask would prevent fusion
        out = b.where(hidden, number(b, 0, out), out)
    out = convert(b, out, dtype)
    out = join_heads(b, out) if rank == 3 else out
    return out, k, v


def _shared_heads(b: Builder, x: Value, q: Value) -> Value:
    """Return a key or value head for each query head; the numbers of heads may be dynamic."""
    if b.probe.same(x, 1, q, 1):
        return x
    own, wanted = extent(b, x, 1), extent(b, q, 1)
    # without heads the remainder is 0, and nothing is read
    fits = compare(b, "equal", b.mod(wanted, b.max(own, 1)), 0)
    times_ = b.max(b.div(require(b, wanted, fits, "query heads that key heads divide"), own), 1)
    return b.gather(x, b.div(arange(b, wanted), times_), axis=1)


def _masked_softmax(
    b: Builder,
    scores: Value,
    mask: Value | None,
    past: Value | None,
    q: Value,
    k: Value,
    is_causal: int,
    kind: DType,
) -> tuple[Value, Value | None]:
    """Return the softmax over visible keys, and which queries see none: their result is 0."""
    low = number(b, -np.inf, scores)
    bias = None
    if mask is not None:
        zero = number(b, 0, scores)
        bias = (
            b.where(mask, zero, low) if b.dtype(mask) is BOOL else convert(b, mask, b.dtype(scores))
        )
    if is_causal:
        seen = _causal(b, q, k, past)
        bias = b.where(seen, number(b, 0, scores) if bias is None else bias, low)
    if bias is not None:
        scores = b.add(scores, bias)
    weights = b.softmax(convert(b, scores, kind), axis=3)
    if mask is None:  # key 0 is always seen
        return weights, None
    top = b.reduce_max(bias, axes=[len(b.dims(bias)) - 1])
    return weights, compare(b, "equal", top, low)


def _lengthened(b: Builder, mask: Value, k: Value, pads: bool) -> Value:
    """Pad a mask that is shorter than the keys; padding hides keys."""
    last = len(b.dims(mask)) - 1
    have, want = b.dims(mask)[last], b.dims(k)[2]
    if b.probe.same(mask, last, k, 2) or (not pads and (have == 1 or DYN in (have, want))):
        return mask
    kind = b.dtype(mask)
    hidden = np.array(False if kind is BOOL else -np.inf).astype(kind.np)
    if DYN in (*b.dims(mask), want):
        places = axis_range(b, k, 2)
        fits = less_equal(b, extent(b, mask, last), extent(b, k, 2))
        places = require(b, places, fits, "a mask no longer than the keys")
        return gather_or(b, mask, places, last, b.literal(hidden))
    if want < have:
        raise ModelError(f"attn_mask of {have} columns, expected at most the {want} keys")
    dims = [*b.dims(mask)[:-1], want - have]
    limits.filled(dims)
    return b.concat([mask, b.literal(np.broadcast_to(hidden, dims))], axis=last)


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(
    b: Builder,
    node: Node,
    x: Value,
    cos: Value,
    sin: Value,
    positions: Value | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Value:
    """Rotate pairs of each head's elements by the angle of their position."""
    rank = len(b.dims(x))
    if rank == 3:
        if not num_heads:
            raise ModelError("expected num_heads with an input of rank 3")
        x = split_heads(b, x, num_heads)
    elif rank != 4:
        raise ModelError(f"expected rank 3 or 4, got {rank}")
    if b.dims(x)[3] == DYN and not rotary_embedding_dim and b.dims(cos)[-1] != DYN:
        x = known_extent(b, x, 3, 2 * b.dims(cos)[-1], "heads")
    size = b.dims(x)[3]
    turned = rotary_embedding_dim or size
    if size == DYN and rotary_embedding_dim:
        fits = greater_equal(b, extent(b, x, 3), turned)
        x = require(b, x, fits, f"heads of {turned} elements or more")
    if turned == DYN or turned % 2 or (size != DYN and turned > size):
        raise ModelError(f"rotary_embedding_dim {turned} does not fit heads of size {size}")
    if positions is not None:
        rows = Dim(cos, 0, "the rows of cos_cache")
        positions = within(b, positions, "position_ids", 0, rows, computed=False)
        cos, sin = b.gather(cos, positions, axis=0), b.gather(sin, positions, axis=0)
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    # batch, 1, length, rotated / 2
    cos, sin = (unsqueeze(b, convert(b, v, kind), [1]) for v in (cos, sin))
    head = slice_(b, x, [3], [0], [turned])
    half = turned // 2
    if interleaved:
        pairs = b.reshape(head, dims=[0, 0, 0, half, 2])
        first, second = (squeeze(b, slice_(b, pairs, [4], [i], [i + 1]), [4]) for i in (0, 1))
    else:
        first, second = (slice_(b, head, [3], [i * half], [(i + 1) * half]) for i in (0, 1))
    first, second = convert(b, first, kind), convert(b, second, kind)
    real = convert(b, b.sub(b.mul(first, cos), b.mul(second, sin)), dtype)
    imaginary = convert(b, b.add(b.mul(first, sin), b.mul(second, cos)), dtype)
    if interleaved:
        pairs = b.concat([unsqueeze(b, real, [4]), unsqueeze(b, imaginary, [4])], axis=4)
        head = b.reshape(pairs, dims=[0, 0, 0, turned])
    else:
        head = b.concat([real, imaginary], axis=3)
    if turned != size:
        rest = slice_(b, x, [3], [turned], [_FAR if size == DYN else size])
        head = b.concat([head, rest], axis=3)
    return join_heads(b, head) if rank == 3 else head

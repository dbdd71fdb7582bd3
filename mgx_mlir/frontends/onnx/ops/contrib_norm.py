"""com.microsoft: normalisations with fused sums and embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mgx_mlir.core.dtypes import FLOAT, INT32, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.extents import divided, extents, reshaped, times
from mgx_mlir.frontends.helpers import (
    along,
    axis_in,
    convert,
    fitted,
    reshape,
    same_extent,
    slice_,
    squeeze,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.contrib_fused import NEEDED, channels_first, of_columns, present
from mgx_mlir.frontends.onnx.ops.contrib_fused import channels_last as to_channels_last
from mgx_mlir.frontends.onnx.ops.normalize import grouped, standardized
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.smooth import wide_sum
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


def layer_norm(
    b: Builder, x: Value, scale: Value, bias: Value | None, epsilon: float
) -> tuple[Value, Value, Value]:
    """Normalise over the last axis; return the result, the mean and 1 / deviation."""
    dtype, kind, last = b.dtype(x), wide(b.dtype(x)), len(b.dims(x)) - 1
    x, scale = fitted(b, x, scale, "a scale")
    if bias is not None:
        x, bias = fitted(b, x, bias, "a bias")
    y, mean, inverse = standardized(b, convert(b, x, kind), [last], epsilon)
    y = b.mul(y, convert(b, scale, kind))
    y = y if bias is None else b.add(y, convert(b, bias, kind))
    return convert(b, y, dtype), mean, inverse


def rms_norm(b: Builder, x: Value, scale: Value, axis: int, epsilon: float) -> tuple[Value, Value]:
    """Return x scale / sqrt(mean(x^2) + epsilon) over the axes from `axis` on, and the inverse
    divisor.

    The result has the type of the scale.
    """
    rank, kind = len(b.dims(x)), wide(b.dtype(x))
    x, scale = fitted(b, convert(b, x, kind), scale, "a scale")
    square = b.reduce_mean(b.mul(x, x), axes=list(range(axis_in(axis, rank), rank)))
    inverse = b.rsqrt(b.add(square, epsilon))
    y = b.mul(b.mul(x, inverse), convert(b, scale, kind))
    return convert(b, y, b.dtype(scale)), inverse


@onnx_op("SkipLayerNormalization", domain=MS)
def skip_layer_normalization(
    b: Builder,
    node: Node,
    x: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None = None,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> Outputs:
    """Import SkipLayerNormalization: a layer norm of x + skip + bias; the sum is output 3."""
    total = _residual(b, x, skip, bias)
    y, mean, inverse = layer_norm(b, total, gamma, beta, epsilon)
    dtype = b.dtype(x)
    return convert(b, y, dtype), mean, inverse, convert(b, total, dtype)


def _residual(b: Builder, x: Value, skip: Value, bias: Value | None) -> Value:
    """Return x + skip + bias, in f32 for 16-bit floats, because the norm subtracts their mean.

    A skip with batch 1, or without a batch, applies to all entries.
    """
    for i in range(1, min(len(b.dims(x)), len(b.dims(skip))) if len(b.dims(skip)) > 1 else 1):
        at = len(b.dims(skip)) - i
        skip = same_extent(b, skip, at, x, len(b.dims(x)) - i, "a skip of the input's dims")
    return wide_sum(b, [x, skip] if bias is None else [x, skip, of_columns(b, bias, x)])


@onnx_op("SkipSimplifiedLayerNormalization", domain=MS)
def skip_simplified_layer_normalization(
    b: Builder,
    node: Node,
    x: Value,
    skip: Value,
    gamma: Value,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> Outputs:
    """Import SkipSimplifiedLayerNormalization: an RMS norm of x + skip + bias.

    Output 1, the mean, is undefined for an RMS norm; as in MIGraphX it is the mean of squares.
    """
    total = _residual(b, x, skip, bias)
    y, inverse = rms_norm(b, total, gamma, -1, epsilon)
    squares = None
    if node.wants(1):
        squares = b.reduce_mean(b.mul(total, total), axes=[len(b.dims(total)) - 1])
    return y, squares, inverse, convert(b, total, b.dtype(x))


@onnx_op("SimplifiedLayerNormalization")  # an operator of onnxruntime only
@onnx_op("SimplifiedLayerNormalization", domain=MS)  # spelling of some converters
def simplified_layer_normalization(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Outputs:
    """Import SimplifiedLayerNormalization: an RMS norm."""
    if stash_type != 1:
        raise NotSupported(f"stash_type {stash_type}")
    return rms_norm(b, x, scale, axis, epsilon)


# ---- groups and branches -----------------------------------------------------------------------


def _group_norm(
    b: Builder, x: Value, gamma: Value, beta: Value, activation: int, epsilon: float, groups: int
) -> Value:
    """Normalise groups with channels first; moments, scale and activation are computed in f32."""
    if activation not in (0, 1):
        raise ModelError(f"attribute 'activation' expected 0 or 1, got {activation}")
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    y = grouped(b, convert(b, x, kind), groups, epsilon)
    y = b.mul(y, along(b, convert(b, gamma, kind), x, 1))
    y = b.add(y, along(b, convert(b, beta, kind), x, 1))
    return convert(b, b.mul(y, b.sigmoid(y)) if activation else y, dtype)


@onnx_op("GroupNorm", domain=MS)
def group_norm(
    b: Builder,
    node: Node,
    x: Value,
    gamma: Value,
    beta: Value,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Value:
    """Import GroupNorm: channels-last unless an attribute says otherwise."""
    x = channels_first(b, x) if channels_last else x
    return _turned(b, _group_norm(b, x, gamma, beta, activation, epsilon, groups), channels_last)


def _turned(b: Builder, y: Value, last: int) -> Value:
    return to_channels_last(b, y) if last else y


@onnx_op("SkipGroupNorm", domain=MS)
def skip_group_norm(
    b: Builder,
    node: Node,
    x: Value,
    gamma: Value,
    beta: Value,
    skip: Value,
    bias: Value | None = None,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Outputs:
    """Import SkipGroupNorm: a group norm of x + skip + bias; a skip of rank 2 is per channel."""
    rank, dtype = len(b.dims(x)), b.dtype(x)
    of_channels = len(b.dims(skip)) == 2 or b.dims(skip)[1:-1] == (1,) * (rank - 2)
    if len(b.dims(skip)) == 2:
        skip = unsqueeze(b, skip, range(1, rank - 1) if channels_last else range(2, rank))
    elif not channels_last and of_channels:
        skip = channels_first(b, skip)
    channel = rank - 1 if channels_last else 1
    for i in (0, channel) if of_channels else range(rank):
        skip = same_extent(b, skip, i, x, i, "a skip of the input's dims")
    terms = [x, skip]
    if bias is not None:
        bias = same_extent(b, bias, 0, x, channel, "a bias of the input's channels")
        terms.append(bias if channels_last else unsqueeze(b, bias, range(1, rank - 1)))
    total = wide_sum(b, terms)
    first = channels_first(b, total) if channels_last else total
    y = convert(b, _group_norm(b, first, gamma, beta, activation, epsilon, groups), dtype)
    return _turned(b, y, channels_last), convert(b, total, dtype)


def _branches(b: Builder, x: Value, count: int) -> tuple[Value, bool]:
    """Return x as {.., branches, features}, and whether the branches were flattened."""
    if not count:
        return x, False
    return _split_last(b, x, count), True


def _split_last(b: Builder, x: Value, count: int) -> Value:
    """{.., count * size} -> {.., count, size}."""
    return divided(b, x, count, "branches", "the last dim")


def _join_last(b: Builder, x: Value) -> Value:
    """{.., count, size} -> {.., count * size}."""
    *rest, count, size = extents(b, x)
    return reshaped(b, x, [*rest, times(b, count, size)])


def _for_branches(b: Builder, scale: Value, x: Value) -> Value:
    """Return a scale for branches {.., C, H}: {H}, or {C, H} from any dims of as many elements."""
    (*_, count, size), have = b.dims(x), b.dims(scale)
    axis = len(b.dims(x)) - 1
    if len(have) == 1:
        if DYN in (size, *have):
            raise NotSupported("a scale of one dim beside branches of dynamic size")
        if have[0] == size:
            return scale
        if not size or have[0] % size or count not in (DYN, have[0] // size):
            raise ModelError(f"a scale of {have[0]} elements for {count} branches of {size}")
        scale = reshape(b, scale, [have[0] // size, size])
    elif len(have) != 2:
        raise ModelError(f"a scale of dims {show_dims(have)} for {count} branches of {size}")
    scale = same_extent(b, scale, 0, x, axis - 1, "a scale for each branch")
    return same_extent(b, scale, 1, x, axis, "a scale as long as a branch")


@onnx_op("BranchwiseRMSNorm", domain=MS)
def branchwise_rms_norm(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value | None = None,
    *,
    epsilon: float = 1e-5,
    num_branches: int = 0,
) -> Value:
    """Import BranchwiseRmsNorm: a norm per branch; the scale is shared, {H}, or {C, H}, or {C *
    H}.
    """
    dtype = b.dtype(x)
    y, flat = _branches(b, convert(b, x, FLOAT), num_branches)
    square = b.reduce_mean(b.mul(y, y), axes=[len(b.dims(y)) - 1])
    y = b.mul(y, b.rsqrt(b.add(square, epsilon)))
    if scale is not None:
        y = b.mul(y, convert(b, _for_branches(b, scale, y), FLOAT))
    return convert(b, _join_last(b, y) if flat else y, dtype)


_GATES = {"silu": True, "swish": True, "sigmoid": False}


@onnx_op("GatedRMSNorm", domain=MS)
def gated_rms_norm(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    gate: Value,
    *,
    activation: str = "silu",
    epsilon: float = 1e-5,
) -> Value:
    """Import GatedRmsNorm: a norm of groups as long as the scale, times the activated gate, in
    f32.
    """
    if activation not in _GATES:
        raise ModelError(f"attribute 'activation' expected silu or sigmoid, got {activation}")
    dtype = b.dtype(x)
    size = b.dims(scale)[0]
    if size == DYN:
        raise NotSupported("a scale of dynamic length")
    for i in range(len(b.dims(x))):
        gate = same_extent(b, gate, i, x, i, "a gate of the input's dims")
    value, gate = convert(b, x, FLOAT), convert(b, gate, FLOAT)
    rows = divided(b, value, size, "elements of the scale", "the last dim", inner=True)
    y, _ = rms_norm(b, rows, convert(b, scale, FLOAT), -1, epsilon)
    weight = b.sigmoid(gate)
    if _GATES[activation]:
        weight = b.mul(gate, weight)
    return convert(b, b.mul(_join_last(b, y), weight), dtype)


def _gates(b: Builder, v: Value, streams: Value) -> Value:
    """Return gates as {.., C, 1} or {.., C, H}, in f32."""
    rank, (count, size) = len(b.dims(streams)), b.dims(streams)[-2:]
    v, dims = convert(b, v, FLOAT), b.dims(v)
    if len(dims) == rank - 1 and dims[-1] != count:
        if DYN in (dims[-1], count):
            raise NotSupported("gates, or branches, whose number is known at run time only")
        if size not in (DYN, dims[-1] // max(count, 1)):
            wanted = f"{count} branches of {size}"
            raise ModelError(f"gates of dims {show_dims(dims)} do not fit {wanted}")
        v = _split_last(b, v, count)
    elif len(dims) == rank - 1:
        v = unsqueeze(b, v, [rank - 1])
    axes = range(rank if b.dims(v)[-1] != 1 else rank - 1)
    return _as_streams(b, v, streams, axes, "gates")


def _as_streams(b: Builder, v: Value, streams: Value, axes: Iterable[int], what: str) -> Value:
    """Return `v` broadcast so that its dim i equals the streams' dim `axes`[i]."""
    axes = list(axes)
    if len(b.dims(v)) < len(axes):
        raise ModelError(f"{what} of dims {show_dims(b.dims(v))}, expected rank {len(axes)}")
    for i, axis in enumerate(axes):
        v = same_extent(b, v, i, streams, axis, f"{what} of the streams' dims")
    return v


@onnx_op("HyperConnectionPreMix", domain=MS)
def hyper_connection_pre_mix(
    b: Builder,
    node: Node,
    streams: Value,
    pre_mix: Value,
    *,
    num_branches: int = 0,
    reduction_scale: float = 1.0,
) -> Value:
    """Import HyperConnectionPreMix: the weighted sum of the branches."""
    dtype = b.dtype(streams)
    x, _ = _branches(b, convert(b, streams, FLOAT), num_branches)
    axis = len(b.dims(x)) - 2
    total = squeeze(b, b.reduce_sum(b.mul(x, _gates(b, pre_mix, x)), axes=[axis]), [axis])
    return convert(b, b.mul(total, reduction_scale), dtype)


@onnx_op("HyperConnectionPostMix", domain=MS)
def hyper_connection_post_mix(
    b: Builder,
    node: Node,
    streams: Value,
    block_output: Value,
    post_mix: Value,
    stream_mix: Value | None = None,
    *,
    num_branches: int = 0,
) -> Value:
    """Import HyperConnectionPostMix: branches mixed by a matrix, plus the block's weighted
    output.
    """
    dtype = b.dtype(streams)
    x, flat = _branches(b, convert(b, streams, FLOAT), num_branches)
    rank = len(b.dims(x))
    block_output = _as_streams(b, block_output, x, [*range(rank - 2), rank - 1], "a block_output")
    if stream_mix is not None:  # {.., from, to}: a sum over the first
        stream_mix = _as_streams(b, stream_mix, x, [*range(rank - 1), rank - 2], "a stream_mix")
        mixed = b.mul(
            unsqueeze(b, convert(b, stream_mix, FLOAT), [rank]), unsqueeze(b, x, [rank - 1])
        )
        added = squeeze(b, b.reduce_sum(mixed, axes=[rank - 2]), [rank - 2])
    else:
        added = x
    block = unsqueeze(b, convert(b, block_output, FLOAT), [rank - 2])
    out = b.add(added, b.mul(_gates(b, post_mix, x), block))
    return convert(b, _join_last(b, out) if flat else out, dtype)


@onnx_op("EngramGate", domain=MS)
def engram_gate(
    b: Builder,
    node: Node,
    key: Value,
    query: Value,
    value: Value,
    key_norm_scale: Value,
    query_norm_scale: Value,
    conv_norm_scale: Value | None = None,
    *,
    epsilon: float = 1e-5,
) -> Outputs:
    """Import EngramGate: v sigmoid(sign(d) sqrt(max(|d|, 1e-6))), d = norm(key) . norm(query) /
    sqrt(size).
    """
    dtype, size = b.dtype(key), b.dims(key)[-1]
    if size == DYN:
        raise NotSupported("a hidden size that is known at run time only")

    def normed(x: Value, scale: Value) -> Value:
        return rms_norm(b, convert(b, x, FLOAT), convert(b, scale, FLOAT), -1, epsilon)[0]

    both = b.mul(normed(key, key_norm_scale), normed(query, query_norm_scale))
    dot = b.div(b.reduce_sum(both, axes=[3]), math.sqrt(size))
    gate = b.sigmoid(b.mul(b.sign(dot), b.sqrt(b.max(b.abs(dot), 1e-6))))
    out = b.mul(gate, unsqueeze(b, convert(b, value, FLOAT), [2]))
    second = None
    if node.wants(1):
        if conv_norm_scale is None:
            raise ModelError("expected conv_norm_scale with the second output")
        second = convert(b, normed(out, conv_norm_scale), dtype)
    return convert(b, out, dtype), second


# ---- embeddings --------------------------------------------------------------------------------


def _mask_index(b: Builder, ids: Value, mask: Value | None) -> Value:
    """Return the number of set entries of the mask; 0 without a mask."""
    if mask is None:
        first = slice_(b, ids, [1], [0], [1])
        return squeeze(b, b.mul(first, 0), [1])
    return convert(b, squeeze(b, b.reduce_sum(convert(b, mask, INT32), axes=[1]), [1]), INT32)


def _embedded(
    b: Builder,
    ids: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    segment_table: Value | None,
    position_ids: Value | None,
) -> Value:
    ids = within(b, ids, "input_ids", 0, Dim(words, 0, "the number of words"), computed=False)
    terms = [b.gather(words, ids, axis=0)]
    if position_ids is None:
        length = b.dims(ids)[1]
        if length == DYN:
            count = squeeze(b, b.shape(ids, 1, 2), [0])
            zero, one = (b.literal(n, INT64) for n in (0, 1))
            rows = b.gather(positions, b.dynamic_range(zero, count, one), axis=0)
        else:
            rows = slice_(b, positions, [0], [0], [length])
        terms.append(unsqueeze(b, rows, [0]))
    else:
        rows = Dim(positions, 0, "the number of positions")
        position_ids = within(b, position_ids, "position_ids", 0, rows, computed=False)
        terms.append(b.gather(positions, position_ids, axis=0))
    if segments is not None and segment_table is not None:
        rows = Dim(segment_table, 0, "the number of segments")
        segments = within(b, segments, "segment_ids", 0, rows, computed=False)
        terms.append(b.gather(segment_table, segments, axis=0))
    return wide_sum(b, terms)


@onnx_op("EmbedLayerNormalization", domain=MS)
def embed_layer_normalization(
    b: Builder,
    node: Node,
    input_ids: Value,
    segment_ids: Value | None = None,
    word_embedding: Value = NEEDED,
    position_embedding: Value = NEEDED,
    segment_embedding: Value | None = None,
    gamma: Value = NEEDED,
    beta: Value = NEEDED,
    mask: Value | None = None,
    position_ids: Value | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 1,
) -> Outputs:
    """Import EmbedLayerNormalization: the layer norm of the sum of the embeddings."""
    present(
        word_embedding=word_embedding, position_embedding=position_embedding, gamma=gamma, beta=beta
    )
    total = _embedded(
        b, input_ids, segment_ids, word_embedding, position_embedding, segment_embedding,
        position_ids,
    )  # fmt: skip
    index = _mask_index(b, input_ids, mask) if node.wants(1) else None
    y, dtype = layer_norm(b, total, gamma, beta, epsilon)[0], b.dtype(gamma)
    return convert(b, y, dtype), index, convert(b, total, dtype)


@onnx_op("QEmbedLayerNormalization", domain=MS)
def q_embed_layer_normalization(
    b: Builder,
    node: Node,
    input_ids: Value,
    segment_ids: Value | None = None,
    words: Value = NEEDED,
    positions: Value = NEEDED,
    segment_table: Value | None = None,
    gamma: Value = NEEDED,
    beta: Value = NEEDED,
    mask: Value | None = None,
    words_scale: Value = NEEDED,
    positions_scale: Value = NEEDED,
    segment_scale: Value = NEEDED,
    gamma_scale: Value = NEEDED,
    beta_scale: Value = NEEDED,
    words_zero: Value = NEEDED,
    positions_zero: Value = NEEDED,
    segment_zero: Value = NEEDED,
    gamma_zero: Value = NEEDED,
    beta_zero: Value = NEEDED,
    *,
    epsilon: float = 1e-12,
) -> Outputs:
    """Import QEmbedLayerNormalization: gather rows of 8-bit tables, then scale them."""

    present(
        word_embedding_quant=words, position_embedding_quant=positions, gamma_quant=gamma,
        beta_quant=beta, word_embedding_scale=words_scale, gamma_scale=gamma_scale,
        position_embedding_scale=positions_scale, beta_scale=beta_scale, beta_zero_point=beta_zero,
        word_embedding_zero_point=words_zero, position_embedding_zero_point=positions_zero,
        gamma_zero_point=gamma_zero,
    )  # fmt: skip

    def real(v: Value, scale: Value, zero: Value) -> Value:
        centred = b.sub(convert(b, v, INT32), convert(b, zero, INT32))
        return b.mul(convert(b, centred, FLOAT), scale)

    vocabulary = Dim(words, 0, "the number of words")
    input_ids = within(b, input_ids, "input_ids", 0, vocabulary, computed=False)
    total = real(b.gather(words, input_ids, axis=0), words_scale, words_zero)
    length = b.dims(input_ids)[1]
    if length == DYN:
        raise NotSupported("a dynamic sequence length")
    places = unsqueeze(b, slice_(b, positions, [0], [0], [length]), [0])
    total = b.add(total, real(places, positions_scale, positions_zero))
    if segment_ids is not None and segment_table is not None:
        present(
            segment_embedding_scale=segment_scale, segment_embedding_zero_point=segment_zero
        )  # fmt: skip
        most = Dim(segment_table, 0, "the number of segments")
        segment_ids = within(b, segment_ids, "segment_ids", 0, most, computed=False)
        rows = b.gather(segment_table, segment_ids, axis=0)
        total = b.add(total, real(rows, segment_scale, segment_zero))
    gamma, beta = real(gamma, gamma_scale, gamma_zero), real(beta, beta_scale, beta_zero)
    index = _mask_index(b, input_ids, mask) if node.wants(1) else None
    return layer_norm(b, total, gamma, beta, epsilon)[0], index

"""com.microsoft: attention of grouped heads over a key-value cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.bounds import Dim, Sum, within
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    concat,
    convert,
    extent_as,
    less_equal,
    number,
    slice_,
    squeeze,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.attention import (
    join_heads,
    of_heads,
    repeat_heads,
    rotary_embedding,
    split_heads,
)
from mgx_mlir.frontends.onnx.ops.contrib_attention import (
    Attended,
    Scores,
    attend,
    default_scale,
)
from mgx_mlir.frontends.onnx.ops.contrib_attention import (
    causal as causal_mask,
)
from mgx_mlir.frontends.onnx.ops.contrib_cache import Format, Window, format_of
from mgx_mlir.frontends.onnx.ops.contrib_norm import rms_norm
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import pad_at_run_time
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


def packed_heads(
    b: Builder, query: Value, key: Value | None, value: Value | None, heads: int, kv_heads: int
) -> Value:
    """Split {batch, heads + 2 kv_heads, length, size} into the heads of query, key and value."""
    if heads < 1 or kv_heads < 1 or heads % kv_heads:
        raise ModelError(f"{heads} query heads cannot share {kv_heads} key heads")
    if key is None or (value is not None and b.dims(key) == b.dims(value) == (1,)):
        # some exporters pass one number in place of key and value
        return split_heads(b, query, heads + 2 * kv_heads)
    if value is None:
        raise ModelError("key and value come together")
    if len(b.dims(key)) == 4:
        given = (of_heads(b, t, kv_heads, "keys and values") for t in (key, value))
        parts = [split_heads(b, query, heads), *given]
    else:
        parts = [
            split_heads(b, t, n) for t, n in ((query, heads), (key, kv_heads), (value, kv_heads))
        ]
    return b.concat(parts, axis=1)


def cut_heads(b: Builder, packed: Value, heads: int, kv_heads: int) -> tuple[Value, Value, Value]:
    """Split a tensor of concatenated query, key and value heads."""
    ends = (0, heads, heads + kv_heads, heads + 2 * kv_heads)
    q, k, v = (slice_(b, packed, [1], [ends[i]], [ends[i + 1]]) for i in range(3))
    return q, k, v


def turned(
    b: Builder,
    node: Node,
    packed: Value,
    lengths: Value,
    cos: Value | None,
    sin: Value | None,
    positions: Value | None,
    *,
    heads: int,
    kv_heads: int,
    interleaved: int,
) -> Value:
    """Return the query and key heads rotated by the given positions, or by those after the
    cache.
    """
    if cos is None or sin is None:
        raise ModelError("expected cos_cache and sin_cache with do_rotary")
    if positions is None:
        return b.gqa_rotary_embedding(
            packed, lengths, cos, sin, num_heads=heads, kv_num_heads=kv_heads,
            interleaved=bool(interleaved),
        )  # fmt: skip
    count, half = heads + kv_heads, b.dims(cos)[1]
    if half == DYN:
        raise NotSupported("caches of a width that is known at run time only")
    both = slice_(b, packed, [1], [0], [count])
    both = rotary_embedding(
        b, node, both, cos, sin, positions, interleaved=interleaved, rotary_embedding_dim=2 * half
    )
    return b.concat([both, slice_(b, packed, [1], [count], [count + kv_heads])], axis=1)


def _rows_wanted(b: Builder, past: Value, total: Value) -> list[Value]:
    """Return the rows that a cache must have; [] if any number is valid."""
    have, known = b.dims(past)[2], b.const(total)
    if known is None:
        return [b.reshape(convert(b, total, INT64), dims=[])]
    wanted = int(known.reshape(-1)[0])
    return [] if have != DYN and wanted <= have else [b.literal(wanted, INT64)]


def first_rows(b: Builder, lengths: Value, new: Value) -> Value:
    """Return the first new row of each batch entry, {batch}: earlier rows are in the cache."""
    known = convert(b, lengths, INT64)
    if len(b.dims(known)) == 2:
        known = squeeze(b, known, [1])
    rows = extent_as(b, new, 2, INT64)
    return b.max(b.sub(b.add(known, 1), rows), 0)


def visible(
    b: Builder, q: Value, k: Value, first: Value, window: int, is_causal: bool = True
) -> Value:
    """Return whether query i, in row first + i of the cache, may see key j: {batch, 1, queries,
    keys}.

    A window of w lets it see w keys, the last of which is its own.
    """
    key = axis_range(b, k, 2)
    row = b.add(unsqueeze(b, first, [1]), unsqueeze(b, axis_range(b, q, 2), [0]))
    if not is_causal:
        row = b.add(unsqueeze(b, first, [1]), b.sub(extent_as(b, q, 2, INT64), 1))
    row = unsqueeze(b, row, [1, 3])
    seen = less_equal(b, key, row)
    if window >= 0:
        seen = b.logical_and(seen, compare(b, "greater", key, b.sub(row, window)))
    return seen


def grouped_attention(b: Builder, q: Value, k: Value, v: Value, scores: Scores) -> Attended:
    """Attend with several query heads to each head of keys and values."""
    kv_heads = b.dims(k)[1]
    times = b.dims(q)[1] // kv_heads
    return attend(b, q, repeat_heads(b, k, times), repeat_heads(b, v, times), scores)


@onnx_op("GroupQueryAttention", domain=MS)
def group_query_attention(
    b: Builder,
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    seqlens_k: Value | None = None,
    total_sequence_length: Value | None = None,
    cos_cache: Value | None = None,
    sin_cache: Value | None = None,
    position_ids: Value | None = None,
    attention_bias: Value | None = None,
    head_sink: Value | None = None,
    k_scale: Value | None = None,
    v_scale: Value | None = None,
    q_norm_weight: Value | None = None,
    k_norm_weight: Value | None = None,
    query_seqlens: Value | None = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_norm_epsilon: float | None = None,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> Outputs:
    """Attend over a KV cache; `seqlens_k[b]` + 1 rows of entry b are valid, the new ones last.

    With `query_seqlens` only that many of an entry's new rows are valid; the others are padding.
    """
    if seqlens_k is None or total_sequence_length is None:
        raise ModelError("expected seqlens_k and total_sequence_length")
    if (past_key is None) != (past_value is None):
        raise ModelError("past_key and past_value come together")
    kinds = k_quant_type, v_quant_type
    formats = [
        format_of(b, kinds, kv_cache_bit_width, scale_, past)
        for scale_, past in ((k_scale, past_key), (v_scale, past_value))
    ]
    rows = ((query, 1, 1), *(() if past_key is None else ((past_key, 2, 1),)))
    most = None if sliding_window_cache else Sum(1, rows, "the rows of the cache and the new ones")
    total_sequence_length = within(
        b, total_sequence_length, "total_sequence_length", 1, most, computed=False
    )
    total = Sum(0, ((total_sequence_length, -1, 1),), "total_sequence_length")
    seqlens_k = within(b, seqlens_k, "seqlens_k", 0, total, computed=False)
    if do_rotary and position_ids is None and cos_cache is not None:
        rows = Dim(cos_cache, 0, "the rows of cos_cache")
        seqlens_k = within(b, seqlens_k, "seqlens_k", 0, rows, computed=False)
    if do_rotary and position_ids is not None and cos_cache is not None:
        rows = Dim(cos_cache, 0, "the rows of cos_cache")
        position_ids = within(b, position_ids, "position_ids", 0, rows, computed=False)
    packed = packed_heads(b, query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None:
        if k_norm_weight is None:
            raise ModelError("q_norm_weight and k_norm_weight come together")
        q, k, v = cut_heads(b, packed, num_heads, kv_num_heads)
        epsilons = (qk_norm_epsilon if e is None else e for e in (q_norm_epsilon, k_norm_epsilon))
        q, k = (
            rms_norm(b, t, w, -1, e)[0]
            for t, w, e in zip((q, k), (q_norm_weight, k_norm_weight), epsilons, strict=True)
        )
        packed = b.concat([q, k, v], axis=1)
    if query_seqlens is not None:
        if past_key is None or not causal:
            raise ModelError("expected past_key, past_value and causal with query_seqlens")
        if sliding_window_cache:
            raise NotSupported("query_seqlens with sliding_window_cache")
        seqlens_k = _padded_lengths(b, seqlens_k, query_seqlens, packed)
    if do_rotary:
        places = position_ids
        if position_ids is not None and query_seqlens is None:
            places = _places(b, position_ids, packed, total_sequence_length, past_key is None)
        packed = turned(
            b, node, packed, seqlens_k, cos_cache, sin_cache, places, heads=num_heads,
            kv_heads=kv_num_heads, interleaved=rotary_interleaved,
        )  # fmt: skip
    q, k, v = cut_heads(b, packed, num_heads, kv_num_heads)
    scores = Scores(default_scale(b, q, scale), softcap)
    present: tuple[Value, Value] = (k, v)
    if sliding_window_cache:
        if past_key is None or past_value is None:
            raise ModelError("expected past_key and past_value with sliding_window_cache")
        if qk_output and node.wants(3):
            raise NotSupported("qk_output with sliding_window_cache")
        window = Window(b, past_key, k, seqlens_k, local_window_size)
        (k, v), present = _cached((past_key, past_value), (k, v), formats, window.joined, b)
        scores.seen = window.seen()
        if attention_bias is not None:
            scores.added.append(window.bias(attention_bias))
    elif past_key is None or past_value is None:
        scores.seen = _prompt_seen(b, q, k, seqlens_k, local_window_size, bool(causal))
        scores.sure = bool(causal) and local_window_size != 0
    else:
        first = first_rows(b, seqlens_k, k)

        def appended(cache: Value, new: Value) -> tuple[Value, Value]:
            more = _rows_wanted(b, cache, total_sequence_length)
            rows = b.concat_past_present(new, seqlens_k, cache, *more, kv_num_heads=kv_num_heads)
            return rows, rows

        (k, v), present = _cached((past_key, past_value), (k, v), formats, appended, b)
        scores.seen = visible(b, q, k, first, local_window_size, bool(causal))
        scores.sure = local_window_size != 0
    if attention_bias is not None and not sliding_window_cache:
        scores.added.append(_as_long(b, attention_bias, k))
    if head_sink is not None:
        scores.sink = head_sink
    elif smooth_softmax == 1:
        scores.sink = b.multibroadcast(number(b, 0, q), [num_heads])
    found = grouped_attention(b, q, k, v, scores)
    raw = None
    if qk_output and node.wants(3):
        raw = _shown(b, found, scores.seen, q, qk_output, total_sequence_length)
    return join_heads(b, found.out), *present, raw


def _padded_lengths(b: Builder, lengths: Value, valid: Value, new: Value) -> Value:
    """Return `seqlens_k` that counts the padding after an entry's valid rows. The padding is
    written to free rows, which no valid query sees.
    """
    kind = b.dtype(lengths)
    padding = b.sub(extent_as(b, new, 2, kind), convert(b, valid, kind))
    return b.add(lengths, b.reshape(padding, dims=[0, 1]) if len(b.dims(lengths)) == 2 else padding)


def _cached(
    past: Sequence[Value],
    new: Sequence[Value],
    formats: Sequence[Format | None],
    write: Callable[[Value, Value], tuple[Value, Value]],
    b: Builder,
) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """Return keys and values to attend to, and the updated caches; `write(cache, new rows)` returns
    both.
    """
    rows, caches = [], []
    for cache, x, form in zip(past, new, formats, strict=True):
        if form is None:
            seen, kept = write(cache, x)
        else:
            # values in the cache's format, so that only the new rows are written
            held, kept = write(cache, form.closed(b, form.numbers(b, x)))
            seen = form.floats(b, form.opened(b, held), b.dtype(x))
        rows.append(seen)
        caches.append(kept)
    return (rows[0], rows[1]), (caches[0], caches[1])


def _places(b: Builder, given: Value, packed: Value, total: Value, prompt: bool) -> Value:
    """Return the positions of the new rows. In a first prompt, where all rows are new, positions
    count from the first given one for every entry; otherwise each row has its own.
    """
    start = slice_(b, given, [0, 1], [0, 0], [1, 1])
    counted = b.add(start, unsqueeze(b, axis_range(b, packed, 2, b.dtype(given)), [0]))
    counted = b.broadcast(counted, given)[0]
    if prompt:
        return counted
    rows = extent_as(b, packed, 2, INT64)
    first = compare(b, "equal", b.reshape(convert(b, total, INT64), dims=[]), rows)
    known = b.const(first)
    if known is not None:
        return counted if known.all() else given
    return b.where(first, counted, given)


def _shown(b: Builder, found: Attended, seen: Value, q: Value, which: int, total: Value) -> Value:
    """Return the scores before (1) or after (2) softmax, for the keys so far; 0 for hidden keys."""
    raw = found.weights if which == 2 else b.where(seen, found.raw, 0)
    known = b.const(total)
    if known is not None and b.dims(raw)[3] != DYN:
        raw = slice_(b, raw, [3], [0], [int(known.reshape(-1)[0])])
    else:
        keys = b.reshape(convert(b, total, INT64), dims=[1])
        raw = b.op("slice", raw, b.ints([0]), keys, axes=[3])
    return convert(b, raw, b.dtype(q))


def _prompt_seen(
    b: Builder, q: Value, k: Value, lengths: Value, window: int, is_causal: bool
) -> Value:
    """Return `visible` without a cache: rows count from 0, which is known at import."""
    if is_causal and window < 0:
        return causal_mask(b, q, k)
    if is_causal:
        first = b.reshape(b.literal(0, INT64), dims=[1])
        return visible(b, q, k, first, window)
    ends = convert(b, lengths, INT64)
    ends = squeeze(b, ends, [1]) if len(b.dims(ends)) == 2 else ends
    return less_equal(b, axis_range(b, k, 2), unsqueeze(b, ends, [1, 2, 3]))


def _as_long(b: Builder, bias: Value, k: Value) -> Value:
    """Pad a bias of the keys so far to the rows of the cache; no query sees the padding."""
    have, want = b.dims(bias)[3], b.dims(k)[2]
    if DYN in (have, want):
        if have == want and b.probe.same(bias, 3, k, 2):
            return bias
        more = b.max(b.sub(extent_as(b, k, 2, INT64), extent_as(b, bias, 3, INT64)), 0)
        none, zero = b.literal(0, INT64), number(b, 0, bias)
        return pad_at_run_time(b, bias, none, more, 3, "constant", zero)
    if have >= want:
        return slice_(b, bias, [3], [0], [want])
    return b.pad(bias, pads=[0] * 7 + [want - have])


# ---- SparseAttention ---------------------------------------------------------------------------


def _block_mask(b: Builder, rows: Value, columns: Value, blocks: int) -> Value:
    """Return the block masks from their CSR form: {layouts, blocks, blocks}, above 0 where visible.

    Entry n of a layout belongs to row r where rows[r] <= n < rows[r + 1].
    """
    entries = b.dims(columns)[1]
    if entries == DYN:
        raise NotSupported("block_col_indices of dynamic dims")
    place = arange(b, entries, b.dtype(rows))
    begin, end = (unsqueeze(b, slice_(b, rows, [1], [i], [i + blocks]), [2]) for i in (0, 1))
    mine = b.logical_and(b.not_(compare(b, "less", place, begin)), compare(b, "less", place, end))
    which = compare(b, "equal", unsqueeze(b, columns, [2]), arange(b, blocks, b.dtype(columns)))
    return b.dot(convert(b, mine, FLOAT), convert(b, which, FLOAT))


@onnx_op("SparseAttention", domain=MS)
def sparse_attention(
    b: Builder,
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    block_row_indices: Value | None = None,
    block_col_indices: Value | None = None,
    total_sequence_length: Value | None = None,
    key_total_sequence_lengths: Value | None = None,
    cos_cache: Value | None = None,
    sin_cache: Value | None = None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sparse_block_size: int,
) -> Outputs:
    """Import SparseAttention: grouped-query attention with block masks."""
    if past_key is None or past_value is None or block_row_indices is None:
        raise ModelError("expected past_key, past_value and block_row_indices")
    if block_col_indices is None or key_total_sequence_lengths is None:
        raise ModelError("expected block_col_indices and key_total_sequence_lengths")
    key_total_sequence_lengths = within(
        b, key_total_sequence_lengths, "key_total_sequence_lengths", 1,
        Dim(past_key, 2, "the rows of the cache", 1), computed=False,
    )  # fmt: skip
    lengths = b.sub(key_total_sequence_lengths, 1)
    packed = packed_heads(b, query, key, value, num_heads, kv_num_heads)
    if do_rotary:
        packed = turned(
            b, node, packed, lengths, cos_cache, sin_cache, None, heads=num_heads,
            kv_heads=kv_num_heads, interleaved=rotary_interleaved,
        )  # fmt: skip
    q, k, v = cut_heads(b, packed, num_heads, kv_num_heads)
    first = first_rows(b, lengths, k)
    k = b.concat_past_present(k, lengths, past_key, kv_num_heads=kv_num_heads)
    v = b.concat_past_present(v, lengths, past_value, kv_num_heads=kv_num_heads)
    layouts, blocks = b.dims(block_row_indices)[0], b.dims(block_row_indices)[1] - 1
    keys = b.dims(k)[2]
    if DYN in (layouts, keys) or blocks < 0 or num_heads % layouts:
        raise NotSupported("a block mask or cache of dynamic dims")
    mask = _block_mask(b, block_row_indices, block_col_indices, blocks)
    # {batch, layouts, queries, blocks}: mask rows of the queries' blocks
    row = b.add(unsqueeze(b, first, [1]), unsqueeze(b, axis_range(b, q, 2), [0]))
    block = b.min(b.div(row, sparse_block_size), blocks - 1)
    mine = b.gather(mask, block, axis=1)  # {layouts, batch, queries, blocks}
    key_block = b.min(b.div(arange(b, keys), sparse_block_size), blocks - 1)
    open_ = b.gather(mine, key_block, axis=3)
    open_ = b.transpose(open_, permutation=[1, 0, 2, 3])
    if layouts > 1:
        open_ = concat(b, [open_] * (num_heads // layouts), 1)
    seen = b.logical_and(visible(b, q, k, first, -1), compare(b, "greater", open_, 0))
    found = grouped_attention(b, q, k, v, Scores(default_scale(b, q, scale), seen=seen))
    return join_heads(b, found.out), k, v

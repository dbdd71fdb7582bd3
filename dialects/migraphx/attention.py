"""The key-value cache and rotary embedding of grouped-query attention."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, at_most, compatible, merge_dims, product
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, check_same_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, floats


def check_seqlens(t: TensorType, batch: int) -> None:
    """Check that seqlens_k has one integer per batch entry, as {batch} or {batch, 1}."""
    check_index_type(t, "seqlens_k")
    shaped = (
        t.rank in (1, 2)
        and compatible(t.dims[0], batch)
        and (t.rank == 1 or compatible(t.dims[1], 1))
    )
    check(shaped, lambda: f"seqlens_k expected one element per batch entry, got {t}")


def first_positions(seqlens: np.ndarray, length: int) -> np.ndarray:
    """Return the first new row of each batch entry, after the existing ones."""
    return np.maximum(seqlens.reshape(-1).astype(np.int64) + 1 - length, 0)


def turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Return heads (batch, heads, rows, size) rotated by angles: pairs are (i, i + size / 2)."""
    low, high = np.split(x, 2, axis=-1)
    return x * cos + np.concatenate([-high, low], axis=-1) * sin


class ConcatPastPresent(Op, name="concat_past_present"):
    """The cache `past` with the new rows `input` written after the existing ones.

    `input` (batch, heads, new, size), `past` (batch, heads, longest, size), any one dtype.
    `seqlens_k`, integers, one per batch entry, is the number of all rows of the entry minus 1: the
    new ones begin at max(seqlens_k + 1 - new, 0), and rows beyond the end are dropped. `rows`, one
    integer, is the number of rows of the result if larger than that of `past`; rows that are
    neither old nor new are 0. `cos` and `sin` (batch, 1, new, size) turn the new rows first:
    x * cos + concat(-x_high, x_low) * sin, of halves of a head. With `rows_first` the input is
    (batch, new, heads, size). MIGraphX has none of these. `kv_num_heads` is the number of heads,
    0: not stated. The result aliases `past` in MIGraphX; here it is a value. MIGraphX
    `concat_past_present`.

    ```mlir
    %0 = "migraphx.concat_past_present"(%k, %lengths, %past) {kv_num_heads = 2 : i64}
           : (tensor<1x2x1x8xf32>, tensor<1xi32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
    ```
    """

    raw = True
    input: Operand
    seqlens_k: Operand
    past: Operand
    rows: Operand | None
    cos: Operand | None
    sin: Operand | None
    out: Result
    kv_num_heads = attr.int_(0)
    rows_first = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.input, 4, "input")
        check_rank(o.past, 4, "past")
        check_same_dtype([o.input, o.past])
        check_seqlens(o.seqlens_k, o.past.dims[0])
        new, old = o.input.dims, o.past.dims
        if o.rows_first:
            new = (new[0], new[2], new[1], new[3])
        check(
            merge_dims((new[0], new[1], new[3]), (old[0], old[1], old[3])) is not None,
            lambda: f"input expected the batch, heads and size of {o.past}, got {o.input}",
        )
        check(
            o.kv_num_heads >= 0 and (o.kv_num_heads == 0 or compatible(o.kv_num_heads, old[1])),
            lambda: f"kv_num_heads expected {old[1]}, got {o.kv_num_heads}",
        )
        check((o.cos is None) == (o.sin is None), lambda: "cos expected sin beside it")
        if o.cos is not None and o.sin is not None:
            angles = (new[0], 1, new[2], old[3])
            check_same_dtype([o.past, o.cos, o.sin])
            for t in (o.cos, o.sin):
                check(
                    t.rank == 4 and merge_dims(t.dims, angles) is not None,
                    lambda t=t: f"cos and sin expected the dims {angles}, got {t}",
                )
            check(
                old[3] == DYN or old[3] % 2 == 0,
                lambda: f"rows to be turned expected an even size, got {old[3]}",
            )
        if o.rows is None:
            return o.past
        check_index_type(o.rows, "rows")
        check(
            all(compatible(d, 1) for d in o.rows.dims),
            lambda: f"rows expected one element, got {o.rows}",
        )
        wanted = o.const("rows")
        longest = DYN
        if wanted is not None and old[2] != DYN:
            longest = max(old[2], int(wanted.reshape(-1)[0]))
        return o.past.with_dims([*old[:2], longest, old[3]])

    @staticmethod
    def reference(
        x: np.ndarray,
        seqlens_k: np.ndarray,
        past: np.ndarray,
        rows: np.ndarray | None = None,
        cos: np.ndarray | None = None,
        sin: np.ndarray | None = None,
        *,
        kv_num_heads: int = 0,
        rows_first: bool = False,
    ) -> np.ndarray:
        if rows_first:
            x = x.transpose(0, 2, 1, 3)
        if cos is not None and sin is not None:
            x = turned(*(v.astype(np.float64) for v in (x, cos, sin))).astype(x.dtype)
        batch, heads, longest, size = past.shape
        if rows is not None:
            longest = max(longest, int(rows.reshape(-1)[0]))
        out = np.zeros((batch, heads, longest, size), past.dtype)
        out[:, :, : past.shape[2]] = past
        length = x.shape[2]
        for b, start in enumerate(first_positions(seqlens_k, length)):
            count = max(min(length, longest - int(start)), 0)
            out[b, :, start : start + count] = x[b, :, :count]
        return out

    @staticmethod
    def examples() -> list[Example]:
        def lengths(*values: int) -> np.ndarray:
            return np.array(values, np.int32)

        past = floats(2, 3, 6, 4)
        return [
            example(floats(2, 3, 1, 4, seed=1), lengths(0, 3), past, kv_num_heads=3),
            example(floats(2, 3, 4, 4, seed=1), lengths(3, 1), past),
            example(floats(2, 3, 2, 4, seed=1), lengths(4, 5).reshape(2, 1), past),
            example(floats(2, 3, 2, 4, seed=1), lengths(6, 9), past),
            example(floats(2, 3, 2, 4, seed=1), lengths(7, 1), past, np.array([8])),
            example(floats(2, 3, 1, 4, seed=1), lengths(1, 5), past, np.array(3)),
            example(floats(2, 3, 2, 4, seed=1), lengths(1, 1), past[:, :, :0], np.array(2)),
            example(floats(2, 2, 3, 4, seed=1), lengths(4, 1), past, rows_first=True),
            example(
                floats(2, 2, 3, 4, seed=1),
                lengths(4, 5),
                past,
                None,
                *(floats(2, 1, 2, 4, seed=i) for i in (2, 3)),
                rows_first=True,
            ),
            example(
                floats(2, 3, 1, 4, seed=1),
                lengths(5, 7),
                past,
                np.array([8]),
                *(floats(2, 1, 1, 4, seed=i) for i in (2, 3)),
            ),
        ]


class GqaRotaryEmbedding(Op, name="gqa_rotary_embedding"):
    """Rotate the query and key heads of a packed `qkv` by their positions.

    `qkv` (batch, num_heads + 2 * kv_num_heads, new, size) of a float type: query, key and
    value heads; values stay. `cos_cache` and `sin_cache` (positions, half) of the same type; the
    first 2 * half elements of a head are rotated, in pairs (i, i + half), or with `interleaved`
    (2i, 2i + 1). The first new position of an entry is max(seqlens_k + 1 - new, 0); a position
    beyond the caches takes their last row. MIGraphX `gqa_rotary_embedding`.

    ```mlir
    %0 = "migraphx.gqa_rotary_embedding"(%qkv, %lengths, %cos, %sin) {num_heads = 2 : i64,
           kv_num_heads = 1 : i64, interleaved = false}
           : (tensor<1x4x1x8xf32>, tensor<1xi32>, tensor<64x4xf32>, tensor<64x4xf32>)
           -> tensor<1x4x1x8xf32>
    ```
    """

    input: Operand
    seqlens_k: Operand
    cos_cache: Operand
    sin_cache: Operand
    out: Result
    num_heads = attr.int_(1)
    kv_num_heads = attr.int_(1)
    interleaved = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.input, 4, "input")
        check_rank(o.cos_cache, 2, "cos_cache")
        check_rank(o.sin_cache, 2, "sin_cache")
        dtype = check_same_dtype([o.input, o.cos_cache, o.sin_cache])
        check(dtype.is_float, lambda: f"input expected a float type, got {dtype.mlir}")
        check_seqlens(o.seqlens_k, o.input.dims[0])
        heads = o.num_heads + 2 * o.kv_num_heads
        check(
            o.num_heads >= 1 and o.kv_num_heads >= 1 and compatible(o.input.dims[1], heads),
            lambda: (
                f"input expected {heads} heads "
                f"({o.num_heads} + 2 * {o.kv_num_heads}), got {o.input.dims[1]}"
            ),
        )
        caches = merge_dims(o.cos_cache.dims, o.sin_cache.dims)
        check(
            caches is not None,
            lambda: f"sin_cache expected the dims of {o.cos_cache}, got {o.sin_cache}",
        )
        assert caches is not None
        check(
            at_most(product((2, caches[1])), o.input.dims[3]),
            lambda: f"caches expected at most {o.input.dims[3] // 2} columns, got {caches[1]}",
        )
        return o.input

    @staticmethod
    def reference(
        x: np.ndarray,
        seqlens_k: np.ndarray,
        cos_cache: np.ndarray,
        sin_cache: np.ndarray,
        *,
        num_heads: int = 1,
        kv_num_heads: int = 1,
        interleaved: bool = False,
    ) -> np.ndarray:
        half = cos_cache.shape[1]
        length: int = x.shape[2]
        turned = num_heads + kv_num_heads
        at = np.add(first_positions(seqlens_k, length)[:, None], np.arange(length))
        at = np.minimum(at, len(cos_cache) - 1)
        cos, sin = cos_cache[at][:, None], sin_cache[at][:, None]
        out = np.array(x)
        if interleaved:
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        a, b = x[:, :turned, :, first], x[:, :turned, :, second]
        out[:, :turned, :, first] = a * cos - b * sin
        out[:, :turned, :, second] = a * sin + b * cos
        return out

    @staticmethod
    def examples() -> list[Example]:
        lengths = np.array([2, 5], np.int32)
        cos, sin = np.cos(floats(8, 3)), np.sin(floats(8, 3))
        heads = {"num_heads": 2, "kv_num_heads": 1}
        return [
            example(floats(2, 4, 1, 6), lengths, cos, sin, **heads),
            example(floats(2, 4, 3, 6), lengths, cos, sin, **heads, interleaved=True),
            example(floats(2, 4, 3, 8), lengths.reshape(2, 1), cos, sin, **heads),
            example(floats(2, 4, 4, 6), np.array([30, 0], np.int64), cos, sin, **heads),
        ]

"""TfIdfVectorizer over integers and strings: counts of n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import Extent, extents, filled, minus, spread
from mgx_mlir.frontends.helpers import arange, compare, convert, squeeze, unsqueeze
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.texts import numbers_of, tensor_of
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder


@onnx_op("TfIdfVectorizer", since=9, structures=True)
def tf_idf_vectorizer(
    b: Builder,
    node: Node,
    x: Held,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Value:
    """Import TfIdfVectorizer: for each length and skip, compare all windows with all n-grams at
    once.
    """
    if pool_strings:
        x, pool = numbers_of(x, pool_strings)
    else:
        x, pool = tensor_of(x), np.array(pool_int64s or [], np.int64)
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ModelError(f"attribute 'mode' expected TF, IDF or TFIDF, got {mode}")
    rank = len(b.dims(x))
    if rank > 2:
        raise ModelError(f"expected rank 0, 1 or 2, got {rank}")
    grams = _grams(pool, ngram_counts, min_gram_length, max_gram_length)
    total = sum(n // size for size, n in enumerate(np.diff([*ngram_counts, pool.size]).tolist(), 1))
    if len(ngram_indexes) != total or min(ngram_indexes, default=0) < 0:
        raise ModelError(f"expected {total} ngram_indexes from 0, got {list(ngram_indexes)[:8]}")
    flat = convert(b, x, INT64)
    flat = flat if rank == 2 else b.reshape(flat, dims=[1, -1])
    batch, length = extents(b, flat)
    columns = max(ngram_indexes, default=-1) + 1
    out = filled(b, [batch, columns], b.literal(0, FLOAT))
    for first, table in grams:
        count = _count(b, flat, table, length, max_skip_count)
        if count is None:
            continue
        places = np.array(ngram_indexes[first : first + len(table)], np.int64)
        index = spread(b, b.literal(places[None, :]), [batch, len(table)])
        out = b.scatter_add(out, index, convert(b, count, FLOAT), axis=1)
    if mode == "IDF":
        out = b.min(out, 1)
    if mode != "TF" and weights:
        if len(weights) != total:
            raise ModelError(f"expected {total} weights, got {len(weights)}")
        # weights belong to n-grams; ngram_indexes has their columns
        scales = np.ones(columns, np.float32)
        scales[list(ngram_indexes)] = np.array(weights, np.float32)
        out = b.mul(out, b.literal(scales))
    return squeeze(b, out, [0]) if rank < 2 else out


def _grams(
    pool: np.ndarray, counts: Sequence[int], least: int, most: int
) -> list[tuple[int, np.ndarray]]:
    """Return (number of the first, n-grams x n) for each counted length."""
    found, first = [], 0
    ends = [*counts[1:], pool.size]
    for size, (begin, end) in enumerate(zip(counts, ends, strict=True), 1):
        if not 0 <= begin <= end <= pool.size or (end - begin) % size:
            raise ModelError(f"ngram_counts {list(counts)} do not fit a pool of {pool.size}")
        table = pool[begin:end].reshape(-1, size)
        if least <= size <= most and len(table):
            found.append((first, table))
        first += len(table)
    return found


def _count(b: Builder, x: Value, table: np.ndarray, length: Extent, skips: int) -> Value | None:
    """Return how often each n-gram occurs in each row, with up to `skips` elements between its
    items.
    """
    size = table.shape[1]
    total = None
    limits.parts(skips, "skipped elements")
    for step in range(1, 2 if size == 1 else skips + 2):
        starts = minus(b, length, step * (size - 1))
        if not isinstance(starts, int):
            starts = b.max(starts, 0)
        elif starts <= 0:
            break
        else:
            limits.table((starts, size), "places")
        first = unsqueeze(b, arange(b, starts), [1])
        places = b.add(first, b.literal(np.arange(size)[None, :] * step))
        windows = unsqueeze(b, b.gather(x, places, axis=1), [2])
        equal = compare(b, "equal", windows, b.literal(table))  # row, start, n-gram, item
        whole = b.reduce_min(convert(b, equal, INT64), axes=[3])
        count = squeeze(b, b.reduce_sum(squeeze(b, whole, [3]), axes=[1]), [1])
        total = count if total is None else b.add(total, count)
    return total

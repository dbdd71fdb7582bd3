"""Sums of selected rows, sparse to dense, and permutations of layouts."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import show_dims
from mgx_mlir.frontends.extents import elements, extents, filled, zeros_of
from mgx_mlir.frontends.helpers import convert, single, unsqueeze, wide
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.indexing import scattered
from mgx_mlir.frontends.tf.ops.segments import rows_of
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def _register(name: str, how: str) -> None:
    @tf_op(name, f"{name}WithNumSegments")
    def sparse_segment(
        b: Builder,
        node: Node,
        x: Value,
        indices: Value,
        ids: Value,
        *num: Value,
        sparse_gradient: bool = False,
    ) -> Value:
        """Import sparse segment reductions: rows of x at `indices`, summed by sorted ids."""
        dtype = b.dtype(x)
        chosen = convert(b, b.gather(x, indices, axis=0), wide(dtype))
        ids = convert(b, ids, INT64)
        rows = elements(b, num[0])[0] if num else rows_of(b, ids)
        table = zeros_of(b, [rows, *extents(b, x)[1:]], b.dtype(chosen))
        total = scattered(b, "add", table, unsqueeze(b, ids, [1]), chosen)
        if how == "sum":
            return convert(b, total, dtype)
        ones = filled(b, extents(b, ids), b.literal(1, INT64))
        count = scattered(b, "add", zeros_of(b, [rows], INT64), unsqueeze(b, ids, [1]), ones)
        by = convert(b, b.max(count, 1), b.dtype(chosen))
        by = unsqueeze(b, by if how == "mean" else b.sqrt(by), range(1, len(b.dims(x))))
        return convert(b, b.div(total, by), dtype)


_register("SparseSegmentSum", "sum")
_register("SparseSegmentMean", "mean")
_register("SparseSegmentSqrtN", "sqrt")


@tf_op("SparseToDense")
def sparse_to_dense(
    b: Builder,
    node: Node,
    indices: Value,
    shape: Value,
    values: Value,
    default: Value,
    *,
    validate_indices: bool = True,
) -> Value:
    """Import SparseToDense: `values` at index tuples, `default` elsewhere."""
    parts = elements(b, shape)
    start = filled(b, parts, single(b, default, "default_value"))
    rank = len(b.dims(indices))
    if rank > 2:
        raise ModelError(f"sparse_indices expected rank 2 or less, got {rank}")
    if rank == 0:
        indices = unsqueeze(b, indices, [0, 1])
    elif rank == 1:
        indices = unsqueeze(b, indices, [1] if len(parts) == 1 else [0])
    if not b.dims(values):
        values = filled(b, extents(b, indices)[:1], values)
    return scattered(b, "none", start, indices, values)


@tf_op("Empty")
def empty(b: Builder, node: Node, shape: Value, *, dtype: DType, init: bool = False) -> Value:
    """Import Empty as zeros: the contents are unspecified."""
    return zeros_of(b, elements(b, shape), dtype)


# ---- layouts -----------------------------------------------------------------------------------


@tf_op("DataFormatDimMap")
def data_format_dim_map(
    b: Builder, node: Node, x: Value, *, src_format: str = "NHWC", dst_format: str = "NCHW"
) -> Value:
    """Import DataFormatDimMap: an axis of one layout in the other; negative ones count from the
    end.
    """
    table = np.array(_order(src_format, dst_format)).astype(b.dtype(x).np)
    return b.gather(b.literal(np.argsort(table).astype(table.dtype)), x, axis=0)


@tf_op("DataFormatVecPermute")
def data_format_vec_permute(
    b: Builder, node: Node, x: Value, *, src_format: str = "NHWC", dst_format: str = "NCHW"
) -> Value:
    """Import DataFormatVecPermute: a vector, or rows of pairs, with one entry per axis,
    permuted.
    """
    n = b.dims(x)[0] if b.dims(x) else 0
    if n == len(src_format) - 2:  # spatial axes only
        src_format, dst_format = (
            f.replace("N", "").replace("C", "") for f in (src_format, dst_format)
        )
    if n != len(src_format):
        raise ModelError(f"expected {len(src_format)} entries, got dims {show_dims(b.dims(x))}")
    return b.gather(x, b.literal(np.array(_order(src_format, dst_format))), axis=0)


def _order(source: str, target: str) -> list[int]:
    """Return the source index of each target axis."""
    if sorted(source) != sorted(target) or len(set(source)) != len(source):
        raise ModelError(f"layouts {source} and {target} do not fit")
    return [source.index(c) for c in target]

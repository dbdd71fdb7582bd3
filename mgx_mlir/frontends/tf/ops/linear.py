"""Matmuls."""

from __future__ import annotations

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import show_dims
from mgx_mlir.frontends.helpers import convert, transpose
from mgx_mlir.frontends.products import einsum, matmul
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def _flipped(b: Builder, x: Value, wanted: bool) -> Value:
    rank = len(b.dims(x))
    if rank < 2:
        raise ModelError(f"expected matrices, got rank {rank}")
    return transpose(b, x, [*range(rank - 2), rank - 1, rank - 2]) if wanted else x


@tf_op("MatMul")
def mat_mul(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Value:
    """Import MatMul of matrices."""
    if len(b.dims(x)) != 2 or len(b.dims(y)) != 2:
        raise ModelError(
            f"expected matrices, got dims {show_dims(b.dims(x))} and {show_dims(b.dims(y))}"
        )
    return b.dot(_flipped(b, x, transpose_a), _flipped(b, y, transpose_b))


@tf_op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    *,
    adj_x: bool = False,
    adj_y: bool = False,
    Tout: DType | None = None,
) -> Value:
    """Import BatchMatMul, whose batch dims broadcast."""
    kind = Tout or b.dtype(x)
    x, y = convert(b, x, kind), convert(b, y, kind)
    return matmul(b, _flipped(b, x, adj_x), _flipped(b, y, adj_y))


@tf_op("Einsum")
def einsum_op(b: Builder, node: Node, *xs: Value, equation: str) -> Value:
    return einsum(b, xs, equation)

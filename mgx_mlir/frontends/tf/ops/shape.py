"""Shapes: reading them, changing them, permuting and joining."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.build import Builder
from mgx_mlir.core.dtypes import INT32, INT64
from mgx_mlir.frontends.helpers import (
    Value,
    axis_in,
    concat,
    convert,
    reshape_to,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.tf.registry import tf_op


@tf_op("Shape")
def shape_of(b: Builder, node: Any, x: Value, *, out_type: Any = INT32) -> Value:
    return convert(b, b.shape(x), out_type)


@tf_op("Reshape")
def reshape_op(b: Builder, node: Any, x: Value, dims: Value) -> Value:
    known = b.const(dims)
    if known is not None and 0 in known:
        # 0 is an extent here, not one to be copied
        return b.reshape(x, convert(b, dims, INT64)) if b.dims(x) != tuple(known) else x
    return reshape_to(b, x, dims)


@tf_op("ExpandDims")
def expand_dims(b: Builder, node: Any, x: Value, axis: Value) -> Value:
    [at] = node.ints(axis, "dim")
    return unsqueeze(b, x, [axis_in(at, len(b.dims(x)) + 1)])


@tf_op("Transpose")
def transpose_op(b: Builder, node: Any, x: Value, order: Value) -> Value:
    return transpose(b, x, node.ints(order, "perm"))


@tf_op("ConcatV2")
def concat_v2(b: Builder, node: Any, *xs: Value) -> Value:
    *parts, axis = xs
    [at] = node.ints(axis, "axis")
    return concat(b, parts, axis_in(at, len(b.dims(parts[0]))))


@tf_op("Pack")
def pack(b: Builder, node: Any, *xs: Value, axis: int = 0) -> Value:
    at = axis_in(axis, len(b.dims(xs[0])) + 1)
    return concat(b, [unsqueeze(b, x, [at]) for x in xs], at)

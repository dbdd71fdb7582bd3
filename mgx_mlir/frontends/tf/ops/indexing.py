"""Gathers, scatters, and dynamic partition and stitch."""

from __future__ import annotations

import math
from typing import Any

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import elements, extents, plus, product, reshaped, spread, zeros_of
from mgx_mlir.frontends.helpers import (
    arange,
    axis_in,
    compare,
    concat,
    convert,
    settled,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.cutting import strided_slice_op
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def _check_policy(policy: str) -> None:
    if policy not in ("", "DEFAULT", "ERROR"):
        raise NotSupported(f"bad_indices_policy {policy}")


@tf_op("Gather")
def gather(
    b: Builder, node: Node, x: Value, indices: Value, *, validate_indices: bool = True
) -> Value:
    """Import Gather, along axis 0."""
    return b.gather(x, indices, axis=0)


@tf_op("GatherV2")
def gather_v2(
    b: Builder, node: Node, x: Value, indices: Value, axis: Value, *, batch_dims: int = 0
) -> Value:
    """Import GatherV2: dims of x before the axis, of `indices` after the batch, of x after the
    axis.
    """
    rank, own = len(b.dims(x)), len(b.dims(indices))
    at = axis_in(node.ints(axis, "axis")[0], rank)
    batch = batch_dims + own if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(own, at):
        raise ModelError(f"batch_dims {batch_dims} for indices of rank {own} and axis {at}")
    if batch == 0:
        return b.gather(x, indices, axis=at)
    order = [*range(batch), at, *(i for i in range(batch, rank) if i != at)]
    moved = transpose(b, x, order)
    found = b.gathernd(moved, unsqueeze(b, indices, [own]), batch_dims=batch)
    between = at - batch  # axes of x that come before those of the indices
    back = [
        *range(batch), *range(own, own + between), *range(batch, own),
        *range(own + between, own + rank - batch - 1),
    ]  # fmt: skip
    return transpose(b, found, back)


@tf_op("GatherNd")
def gather_nd(
    b: Builder, node: Node, x: Value, indices: Value, *, bad_indices_policy: str = ""
) -> Value:
    """Import GatherNd."""
    _check_policy(bad_indices_policy)
    return b.gathernd(x, convert(b, indices, INT64))


# ---- scatters ----------------------------------------------------------------------------------


def scattered(b: Builder, how: str, x: Value, indices: Value, updates: Value) -> Value:
    """Scatter `updates` into `x` at `indices`, combined by `how`."""
    if 0 in b.dims(updates):
        return x
    return b.op(f"scatternd_{how}", x, convert(b, indices, INT64), updates)


@tf_op("ScatterNd")
def scatter_nd(
    b: Builder,
    node: Node,
    indices: Value,
    updates: Value,
    shape: Value,
    *,
    bad_indices_policy: str = "",
) -> Value:
    """Import ScatterNd: updates of one element are summed."""
    _check_policy(bad_indices_policy)
    dtype = b.dtype(updates)
    start = zeros_of(b, elements(b, shape), dtype)
    return scattered(b, "none" if dtype.is_bool else "add", start, indices, updates)


def _register(name: str, how: str) -> None:
    @tf_op(name)
    def scatter(
        b: Builder,
        node: Node,
        x: Value,
        indices: Value,
        updates: Value,
        *,
        bad_indices_policy: str = "",
    ) -> Value:
        _check_policy(bad_indices_policy)
        if how == "sub":
            return scattered(b, "add", x, indices, b.neg(updates))
        return scattered(b, how, x, indices, updates)


for _name, _how in {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "sub",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
    "ScatterNdNonAliasingAdd": "add",
}.items():
    _register(_name, _how)


@tf_op("TensorStridedSliceUpdate")
def tensor_strided_slice_update(
    b: Builder,
    node: Node,
    x: Value,
    begin: Value,
    end: Value,
    strides: Value,
    value: Value,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Value:
    """Import TensorStridedSliceUpdate: write `value` where StridedSlice would read."""
    own = extents(b, x)
    count = product(b, own)
    places = strided_slice_op(
        b, node, reshaped(b, arange(b, count), own), begin, end, strides, begin_mask=begin_mask,
        end_mask=end_mask, ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
    )  # fmt: skip
    if 0 in b.dims(places):
        return x
    values = spread(b, value, extents(b, places))
    flat = [b.reshape(v, dims=[-1]) for v in (x, settled(b, places), values)]
    return reshaped(b, b.scatter_none(*flat, axis=0), own)


# ---- partition and stitch
# --------------------------------------------------------------------------


@tf_op("DynamicPartition")
def dynamic_partition(
    b: Builder, node: Node, x: Value, partitions: Value, *, num_partitions: int
) -> Outputs:
    """Import DynamicPartition: for each i, the rows with number i."""
    lead = len(b.dims(partitions))
    rows = b.reshape(partitions, dims=[-1]) if lead != 1 else partitions
    if lead != 1:
        x = _merged(b, x, lead)
    out = []
    for i in range(limits.parts(num_partitions, "partitions")):
        hits = b.nonzero(compare(b, "equal", rows, i))
        out.append(b.gather(x, squeeze(b, hits, [0]), axis=0))
    return tuple(out)


def _merged(b: Builder, x: Value, lead: int) -> Value:
    """Merge the first axes."""
    shape = b.concat([b.ints([-1]), b.shape(x, lead)], axis=0)
    return b.reshape(x, shape)


@tf_op("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(b: Builder, node: Node, *xs: Value) -> Value:
    """Import DynamicStitch: row j of data[i] goes to row indices[i][j]; the last one wins."""
    count = len(xs) // 2
    if count < 1 or len(xs) % 2:
        raise ModelError(f"expected as many indices as data, got {len(xs)} inputs")
    indices, rows = [], []
    for index, data in zip(xs[:count], xs[count:], strict=True):
        lead = len(b.dims(index))
        indices.append(convert(b, b.reshape(index, dims=[-1]) if lead != 1 else index, INT64))
        own = extents(b, data)[lead:]
        if lead == 1:
            rows.append(data)
        elif DYN in b.dims(data):
            rows.append(_merged(b, data, lead))
        else:
            rows.append(reshaped(b, data, [math.prod(b.dims(data)[:lead]), *own]))
    at, values = concat(b, indices, 0), concat(b, rows, 0)
    known = b.const(at)
    if known is not None:
        size: Any = int(known.max(initial=-1)) + 1
    else:
        size = plus(b, squeeze(b, b.reduce_max(at, axes=[0]), [0]), 1)
    start = zeros_of(b, [size, *extents(b, values)[1:]], b.dtype(values))
    return scattered(b, "none", start, unsqueeze(b, at, [1]), values)

"""Shapes: reading, changing, permuting, joining and repeating."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.extents import (
    Extent,
    elements,
    exact_quotient,
    extents,
    reshaped,
    scalar,
    times,
    vector,
)
from mgx_mlir.frontends.helpers import (
    axes_in,
    axis_in,
    compare,
    concat,
    convert,
    extent,
    squeeze,
    transpose,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import inserted_dims
from mgx_mlir.frontends.shaping import expand, reshape_by, tile
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.cutting import padded
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

# ---- reading -----------------------------------------------------------------------------------


@tf_op("Shape")
def shape_of(b: Builder, node: Node, x: Value, *, out_type: DType = INT32) -> Value:
    """Import Shape."""
    return convert(b, b.shape(x), out_type)


@tf_op("ShapeN")
def shape_n(b: Builder, node: Node, *xs: Value, out_type: DType = INT32) -> Outputs:
    """Import ShapeN: the shape of each input."""
    return tuple(convert(b, b.shape(x), out_type) for x in xs)


@tf_op("Size")
def size(b: Builder, node: Node, x: Value, *, out_type: DType = INT32) -> Value:
    """Import Size: the number of elements."""
    dims = b.dims(x)
    kind = out_type
    if DYN not in dims:
        count = math.prod(dims)
        if count > np.iinfo(kind.np).max:
            raise ModelError(f"{count} elements are too many for {kind.short}")
        return b.literal(count, kind)
    return convert(b, squeeze(b, b.reduce_prod(b.shape(x), axes=[0]), [0]), kind)


@tf_op("Rank")
def rank_of(b: Builder, node: Node, x: Value) -> Value:
    """Import Rank, which is known at import."""
    return b.literal(len(b.dims(x)), INT32)


# ---- the same elements -------------------------------------------------------------------------


@tf_op("Reshape")
def reshape_op(b: Builder, node: Node, x: Value, shape: Value) -> Value:
    """Import Reshape; -1 is inferred, and 0 is an extent of 0."""
    known = b.const(shape)
    if known is not None and 0 in known and -1 not in known and DYN in b.dims(x):
        return zeros(b, [int(d) for d in known], b.dtype(x))
    return reshape_by(b, x, shape, True)


@tf_op("ExpandDims")
def expand_dims(b: Builder, node: Node, x: Value, axis: Value) -> Value:
    """Import ExpandDims, also at an axis known only at run time."""
    known = b.const(axis)
    if known is None:
        return b.reshape(x, inserted_dims(b, x, b.reshape(axis, dims=[1])))
    if known.size != 1:
        raise ModelError(f"dim expected one number, got {known.size}")
    return unsqueeze(b, x, [axis_in(int(known.reshape(())), len(b.dims(x)) + 1)])


@tf_op("Squeeze")
def squeeze_op(b: Builder, node: Node, x: Value, *, squeeze_dims: Sequence[int] = ()) -> Value:
    """Import Squeeze."""
    dims = b.dims(x)
    if not squeeze_dims:
        if DYN in dims:
            raise NotSupported("dynamic dims without axes")
        return squeeze(b, x, [i for i, d in enumerate(dims) if d == 1])
    return squeeze(b, x, axes_in(squeeze_dims, len(dims)))


@tf_op("Transpose", "ConjugateTranspose")
def transpose_op(b: Builder, node: Node, x: Value, order: Value) -> Value:
    """Import Transpose; the order must be known."""
    rank = len(b.dims(x))
    found = node.ints(order, "perm")
    if len(found) != rank or sorted(axes_in(found, rank)) != list(range(rank)):
        raise ModelError(f"perm {found} is no permutation of rank {rank}")
    return transpose(b, x, axes_in(found, rank))


@tf_op("ZerosLike")
def zeros_like(b: Builder, node: Node, x: Value) -> Value:
    return _like(b, x, 0)


@tf_op("OnesLike")
def ones_like(b: Builder, node: Node, x: Value) -> Value:
    return _like(b, x, 1)


def _like(b: Builder, x: Value, value: int) -> Value:
    one = b.literal(np.array(value, b.dtype(x).np))
    if DYN in b.dims(x):
        return b.op("multibroadcast", [one, x])
    return b.multibroadcast(one, b.dims(x))


# ---- joining and repeating ---------------------------------------------------------------------


@tf_op("ConcatV2")
def concat_v2(b: Builder, node: Node, *xs: Value) -> Value:
    """Import ConcatV2, whose axis is the last input."""
    *parts, axis = xs
    return concat_op(b, node, axis, *parts)


@tf_op("Concat")
def concat_op(b: Builder, node: Node, axis: Value, *parts: Value) -> Value:
    """Import Concat, whose axis is the first input."""
    if not parts:
        raise ModelError("expected at least one tensor to join")
    [at] = node.ints(axis, "axis")
    return concat(b, parts, axis_in(at, len(b.dims(parts[0]))))


@tf_op("ConcatOffset")
def concat_offset(b: Builder, node: Node, axis: Value, *shapes: Value) -> Outputs:
    """Import ConcatOffset: the start of each part in a concat."""
    [at] = node.ints(axis, "concat_dim")
    out, begin = [], None
    for s in shapes:
        n = b.dims(s)[0]
        at = axis_in(at, n)
        mask = b.literal(np.array([i == at for i in range(n)]).astype(b.dtype(s).np))
        out.append(b.mul(s, 0) if begin is None else begin)
        own = b.mul(s, mask)
        begin = own if begin is None else b.add(begin, own)
    return tuple(out)


@tf_op("Pack")
def pack(b: Builder, node: Node, *xs: Value, axis: int = 0) -> Value:
    """Import Pack: stack along a new axis."""
    if not xs:
        raise ModelError("expected at least one tensor to join")
    at = axis_in(axis, len(b.dims(xs[0])) + 1)
    return concat(b, [unsqueeze(b, x, [at]) for x in xs], at)


@tf_op("ParallelConcat")
def parallel_concat(b: Builder, node: Node, *xs: Value, shape: object = None) -> Value:
    """Import ParallelConcat: a concat along axis 0."""
    return concat(b, xs, 0)


@tf_op("Tile")
def tile_op(b: Builder, node: Node, x: Value, multiples: Value) -> Value:
    if not b.dims(x):
        return x
    return tile(b, x, convert(b, multiples, INT64))


@tf_op("BroadcastTo")
def broadcast_to(b: Builder, node: Node, x: Value, shape: Value) -> Value:
    return expand(b, x, convert(b, shape, INT64))


@tf_op("BroadcastArgs")
def broadcast_args(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Import BroadcastArgs: the dims that tensors of dims x and y broadcast to."""
    rank = max(b.dims(x)[0], b.dims(y)[0])

    def padded(v: Value) -> Value:
        missing = rank - b.dims(v)[0]
        if not missing:
            return v
        return b.concat([b.literal(np.ones(missing, b.dtype(v).np)), v], axis=0)

    x, y = padded(x), padded(y)
    return b.where(compare(b, "equal", x, 1), y, x)


# ---- depth, space and batch --------------------------------------------------------------------


def _layout(node: Node, data_format: str | None) -> bool:
    if data_format == "NCHW_VECT_C":
        raise NotSupported("data_format NCHW_VECT_C")
    return node.channels_last(data_format)


@tf_op("DepthToSpace")
def depth_to_space(
    b: Builder, node: Node, x: Value, *, block_size: int, data_format: str | None = None
) -> Value:
    """Import DepthToSpace, in either data format."""
    if len(b.dims(x)) != 4:
        raise ModelError(f"expected rank 4, got {len(b.dims(x))}")
    s = block_size
    if _layout(node, data_format):
        n, h, w, c = extents(b, x)
        left = exact_quotient(b, c, s * s)
        parts = [n, h, w, s, s, left]
        order, out = [0, 1, 3, 2, 4, 5], [n, times(b, h, s), times(b, w, s), left]
    else:
        n, c, h, w = extents(b, x)
        left = exact_quotient(b, c, s * s)
        parts = [n, s, s, left, h, w]
        order, out = [0, 3, 4, 1, 5, 2], [n, left, times(b, h, s), times(b, w, s)]
    return reshaped(b, transpose(b, reshaped(b, x, parts), order), out)


@tf_op("SpaceToDepth")
def space_to_depth(
    b: Builder, node: Node, x: Value, *, block_size: int, data_format: str | None = None
) -> Value:
    """Import SpaceToDepth, in either data format."""
    if len(b.dims(x)) != 4:
        raise ModelError(f"expected rank 4, got {len(b.dims(x))}")
    s = block_size
    if _layout(node, data_format):
        n, h, w, c = extents(b, x)
        parts = [n, exact_quotient(b, h, s), s, exact_quotient(b, w, s), s, c]
        order, out = [0, 1, 3, 2, 4, 5], [n, parts[1], parts[3], times(b, c, s * s)]
    else:
        n, c, h, w = extents(b, x)
        parts = [n, c, exact_quotient(b, h, s), s, exact_quotient(b, w, s), s]
        order, out = [0, 3, 5, 1, 2, 4], [n, times(b, c, s * s), parts[2], parts[4]]
    return reshaped(b, transpose(b, reshaped(b, x, parts), order), out)


@tf_op("SpaceToBatchND")
def space_to_batch_nd(b: Builder, node: Node, x: Value, block: Value, pads: Value) -> Value:
    """Import SpaceToBatchND: pad, then move positions within a block to the batch."""
    sizes = node.ints(block, "block_shape")
    return _to_batch(b, x, sizes, _amounts(b, x, sizes, pads))


def _amounts(
    b: Builder, x: Value, sizes: Sequence[int], amounts: Value
) -> list[tuple[Extent, Extent]]:
    """Return the amounts to pad or crop at both ends of each block axis."""
    rank, m = len(b.dims(x)), len(sizes)
    flat = elements(b, b.reshape(amounts, dims=[-1]))
    negative = any(isinstance(a, int) and a < 0 for a in flat)
    if rank < m + 1 or any(s < 1 for s in sizes) or negative or len(flat) != 2 * m:
        raise ModelError(f"blocks {list(sizes)} do not fit dims {show_dims(b.dims(x))}")
    return list(zip(flat[::2], flat[1::2], strict=True))


def _to_batch(
    b: Builder, x: Value, sizes: Sequence[int], amounts: Sequence[tuple[Extent, Extent]]
) -> Value:
    rank, m = len(b.dims(x)), len(sizes)
    none: tuple[Extent, Extent] = (0, 0)
    pads = [none, *amounts, *[none] * (rank - m - 1)]
    if any(p != none for p in pads):
        x = padded(b, x, pads, b.literal(np.zeros((), b.dtype(x).np)))
    n, *space = extents(b, x)
    inner, after = space[:m], space[m:]
    blocks = [exact_quotient(b, d, s) for d, s in zip(inner, sizes, strict=True)]
    pairs = [p for d, s in zip(blocks, sizes, strict=True) for p in (d, s)]
    x = reshaped(b, x, [n, *pairs, *after])
    order = [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)]
    x = transpose(b, x, [*order, *range(2 * m + 1, rank + m)])
    return reshaped(b, x, [times(b, n, math.prod(sizes)), *blocks, *after])


@tf_op("SpaceToBatch")
def space_to_batch(b: Builder, node: Node, x: Value, pads: Value, *, block_size: int) -> Value:
    """Import SpaceToBatch: SpaceToBatchND of square blocks."""
    sizes = [block_size] * 2
    return _to_batch(b, x, sizes, _amounts(b, x, sizes, pads))


@tf_op("BatchToSpaceND")
def batch_to_space_nd(b: Builder, node: Node, x: Value, block: Value, crops: Value) -> Value:
    """Import BatchToSpaceND: undo SpaceToBatchND, then crop."""
    sizes = node.ints(block, "block_shape")
    return _to_space(b, x, sizes, _amounts(b, x, sizes, crops))


def _to_space(
    b: Builder, x: Value, sizes: Sequence[int], amounts: Sequence[tuple[Extent, Extent]]
) -> Value:
    rank, m = len(b.dims(x)), len(sizes)
    n, *space = extents(b, x)
    inner, after = space[:m], space[m:]
    batch = exact_quotient(b, n, math.prod(sizes))
    x = reshaped(b, x, [*sizes, batch, *inner, *after])
    order = [m, *(i for k in range(m) for i in (m + 1 + k, k)), *range(2 * m + 1, rank + m)]
    joined = [times(b, d, s) for d, s in zip(inner, sizes, strict=True)]
    x = reshaped(b, transpose(b, x, order), [batch, *joined, *after])
    for i, (low, high) in enumerate(amounts):
        x = _cropped(b, x, i + 1, low, high)
    return x


def _cropped(b: Builder, x: Value, axis: int, low: Extent, high: Extent) -> Value:
    """Return `x` cropped at both ends of an axis."""
    if (low, high) == (0, 0):
        return x
    d = b.dims(x)[axis]
    if isinstance(low, int) and isinstance(high, int):
        end = d - high if d != DYN else (-high if high else 2**31 - 1)
        return b.slice(x, axes=[axis], starts=[low], ends=[end])
    end = b.sub(extent(b, x, axis), scalar(b, high))
    return b.op("slice", x, vector(b, [low]), vector(b, [end]), axes=[axis])


@tf_op("BatchToSpace")
def batch_to_space(b: Builder, node: Node, x: Value, crops: Value, *, block_size: int) -> Value:
    """Import BatchToSpace: BatchToSpaceND of square blocks."""
    sizes = [block_size] * 2
    return _to_space(b, x, sizes, _amounts(b, x, sizes, crops))

"""Tensor lists, as recurrent layers use them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import extents, filled, reshaped, scalar, times
from mgx_mlir.frontends.helpers import concat, convert, extent, single, slice_, unsqueeze, zeros
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.lists import elements, item_at, list_of, with_elements, written
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.tf.values import TensorList
from mgx_mlir.frontends.values import Held, Outputs, Value
from mgx_mlir.programs.build import Builder


def _dims(b: Builder, shape: Value) -> tuple[int, ...] | None:
    """Return the dims of elements as far as they are known; None for an unknown rank."""
    known = b.const(shape)
    if known is None:
        rank = b.dims(shape)
        return (DYN,) * rank[0] if rank and rank[0] != DYN else None
    if known.ndim == 0:  # -1 means any dims
        return None
    return tuple(int(d) if d >= 0 else DYN for d in known)


@tf_op("TensorListReserve", raw=True)
def reserve(
    b: Builder,
    node: Node,
    shape: Value,
    count: Value,
    *,
    element_dtype: DType,
    shape_type: DType | None = None,
) -> TensorList:
    """Import TensorListReserve: a list of a given size with unset elements."""
    return TensorList(element_dtype, _dims(b, shape), single(b, count, "num_elements"))


@tf_op("EmptyTensorList", raw=True)
def empty(
    b: Builder,
    node: Node,
    shape: Value,
    most: Value,
    *,
    element_dtype: DType,
    shape_type: DType | None = None,
) -> TensorList:
    """Import EmptyTensorList."""
    return TensorList(element_dtype, _dims(b, shape), b.literal(np.int32(0)))


@tf_op("TensorListFromTensor", raw=True)
def from_tensor(
    b: Builder, node: Node, x: Value, shape: Value, *, element_dtype: object = None
) -> TensorList:
    """Import TensorListFromTensor: the slices of a tensor along axis 0."""
    dims = b.dims(x)
    if not dims:
        raise ModelError("expected a tensor of rank 1 or more, got rank 0")
    size = extent(b, x, 0) if dims[0] == DYN else b.literal(np.int64(dims[0]))
    return TensorList(b.dtype(x), tuple(dims[1:]), size, x)


@tf_op("TensorListStack", raw=True)
def stack(
    b: Builder,
    node: Node,
    v: Held,
    shape: Value,
    *,
    element_dtype: object = None,
    num_elements: int = -1,
) -> Value:
    """Import TensorListStack: the elements along a new axis 0."""
    found = list_of(v)
    if found.stacked is None and (found.dims is None or DYN in found.dims):
        stated = _dims(b, shape)
        found = TensorList(found.dtype, stated, found.size, None, found.mark, found.written)
    return elements(b, found)


@tf_op("TensorListGetItem", raw=True)
def get_item(
    b: Builder,
    node: Node,
    v: Held,
    index: Value,
    shape: Value,
    *,
    element_dtype: object = None,
) -> Value:
    """Import TensorListGetItem."""
    return item_at(b, list_of(v), index)


@tf_op("TensorListSetItem", raw=True)
def set_item(
    b: Builder,
    node: Node,
    v: Held,
    index: Value,
    item: Value,
    *,
    element_dtype: object = None,
    resize_if_index_out_of_bounds: bool = False,
) -> TensorList:
    """Import TensorListSetItem."""
    return written(b, list_of(v), index, item)


@tf_op("TensorListLength", raw=True)
def length(b: Builder, node: Node, v: Held) -> Value:
    """Import TensorListLength."""
    return convert(b, list_of(v).size, INT32)


@tf_op("TensorListElementShape", raw=True)
def element_shape(b: Builder, node: Node, v: Held, *, shape_type: DType) -> Value:
    """Import TensorListElementShape: -1 if the shape is unknown."""
    found = list_of(v)
    if found.stacked is not None:
        return convert(b, b.shape(found.stacked, 1), shape_type)
    if found.dims is None:
        return b.literal(np.array(-1, shape_type.np))
    return b.literal(np.array(found.dims, shape_type.np))


@tf_op("TensorListPushBack", raw=True)
def push_back(
    b: Builder, node: Node, v: Held, item: Value, *, element_dtype: object = None
) -> TensorList:
    """Import TensorListPushBack; refuse a list that grows in a loop."""
    found = list_of(v)
    new = unsqueeze(b, item, [0])
    size = b.add(convert(b, found.size, INT64), 1)
    known = b.const(found.size)
    if found.stacked is None and known is not None and not int(known):
        if found.mark is not None:
            raise NotSupported("a list that grows in a loop")
        return TensorList(found.dtype, tuple(b.dims(item)), size, new)
    stacked = b.concat([elements(b, found), new], axis=0)
    return TensorList(found.dtype, found.dims, size, stacked)


@tf_op("TensorListGather", raw=True)
def gather(
    b: Builder,
    node: Node,
    v: Held,
    indices: Value,
    shape: Value,
    *,
    element_dtype: object = None,
) -> Value:
    return b.gather(elements(b, list_of(v)), convert(b, indices, INT64), axis=0)


@tf_op("TensorListConcatV2", outputs=("tensor", "lengths"), raw=True)
def concat_v2(
    b: Builder,
    node: Node,
    v: Held,
    shape: Value,
    leading: Value,
    *,
    element_dtype: object = None,
    shape_type: DType | None = None,
) -> Outputs:
    """Import TensorListConcatV2: elements joined along their first axis."""
    x = elements(b, list_of(v))
    dims = b.dims(x)
    if len(dims) < 2:
        raise ModelError("expected elements of rank 1 or more")
    count, length, *rest = extents(b, x)
    lengths = filled(b, [count], scalar(b, length))
    return reshaped(b, x, [times(b, count, length), *rest]), lengths


@tf_op("TensorListResize", raw=True)
def resize(b: Builder, node: Node, v: Held, size: Value) -> TensorList:
    found, size = list_of(v), single(b, size, "size")
    if found.stacked is None and found.mark is None:
        return TensorList(found.dtype, found.dims, size)
    x, wanted = elements(b, found), b.const(size)
    dims = b.dims(x)
    if wanted is None or DYN in dims:
        raise NotSupported("a list whose length changes at run time")
    more = int(wanted) - dims[0]
    if more > 0:
        x = concat(b, [x, zeros(b, [more, *dims[1:]], b.dtype(x))], 0)
    stacked = slice_(b, x, [0], [0], [int(wanted)])
    return replace(with_elements(found, stacked), size=size)

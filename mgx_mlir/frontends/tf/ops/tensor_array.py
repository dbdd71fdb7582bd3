"""Tensor arrays of version 1: a constant handle, and a flow value that is the tensor list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import DYN
from mgx_mlir.dialects.migraphx.random import DynamicRange
from mgx_mlir.frontends.helpers import convert, single
from mgx_mlir.frontends.tf.lists import elements, item_at, list_of, with_elements, written, zeros
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.tf.values import TensorList
from mgx_mlir.frontends.values import Held, HostValue, Outputs, Value
from mgx_mlir.programs.build import Builder


@dataclass(frozen=True)
class Array(HostValue):
    """Array of a handle: the number of elements and their type."""

    dtype: DType
    size: Any
    what = "tensor array"


def _array(v: Held) -> Array:
    if not isinstance(v, Array):
        raise ModelError(f"expected a tensor array, got a {getattr(v, 'what', 'tensor')}")
    return v


@tf_op("TensorArrayV3", outputs=("handle", "flow"), raw=True)
def tensor_array(
    b: Builder,
    node: Node,
    size: Value,
    *,
    dtype: DType,
    element_shape: Sequence[int] | None = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    tensor_array_name: str = "",
) -> Outputs:
    """Import TensorArrayV3: a handle, and a flow that represents its elements."""
    size = single(b, size, "size")
    dims = None if element_shape is None else tuple(DYN if d < 0 else d for d in element_shape)
    return Array(dtype, size), TensorList(dtype, dims, size)


@tf_op("TensorArrayWriteV3", raw=True)
def write(
    b: Builder, node: Node, handle: Held, index: Value, item: Value, flow: Held
) -> TensorList:
    """Import TensorArrayWriteV3."""
    _array(handle)
    return written(b, list_of(flow), index, item)


@tf_op("TensorArrayReadV3", raw=True)
def read(b: Builder, node: Node, handle: Held, index: Value, flow: Held, *, dtype: DType) -> Value:
    """Import TensorArrayReadV3."""
    _array(handle)
    return item_at(b, list_of(flow), index)


def _is_everything(b: Builder, indices: Value, size: Value) -> bool:
    """Return whether indices are 0, 1, .. up to the array's size."""
    known = b.const(indices)
    if known is not None:
        count = b.const(size)
        here = np.array_equal(known, np.arange(known.size))
        return here and (count is None or int(count) == known.size)
    return is_a(indices.owner, DynamicRange) and _from_zero(b, indices)


def _from_zero(b: Builder, indices: Value) -> bool:
    start, _, step = (b.const(v) for v in indices.owner.operands)
    return start is not None and step is not None and not int(start) and int(step) == 1


@tf_op("TensorArrayGatherV3", raw=True)
def gather(
    b: Builder,
    node: Node,
    handle: Held,
    indices: Value,
    flow: Held,
    *,
    dtype: DType,
    element_shape: Sequence[int] | None = None,
) -> Value:
    """Import TensorArrayGatherV3."""
    array, found = _array(handle), elements(b, list_of(flow))
    if _is_everything(b, indices, array.size):
        return found
    return b.gather(found, convert(b, indices, INT64), axis=0)


@tf_op("TensorArrayScatterV3", raw=True)
def scatter(
    b: Builder, node: Node, handle: Held, indices: Value, items: Value, flow: Held
) -> TensorList:
    """Import TensorArrayScatterV3."""
    array, found = _array(handle), list_of(flow)
    if found.stacked is None and _is_everything(b, indices, array.size):
        return with_elements(found, items)
    if found.stacked is None:
        dims = b.dims(items)[1:]
        found = zeros(b, found, [b.shape(items, i + 1, i + 2) if d == DYN else d
                                 for i, d in enumerate(dims)])  # fmt: skip
    places = b.unsqueeze(convert(b, indices, INT64), axes=[1])
    return with_elements(found, b.op("scatternd_none", elements(b, found), places, items))


@tf_op("TensorArraySizeV3", raw=True)
def size_of(b: Builder, node: Node, handle: Held, flow: Held) -> Value:
    """Import TensorArraySizeV3."""
    return convert(b, _array(handle).size, INT32)

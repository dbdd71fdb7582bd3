"""Tensor lists: elements stacked along axis 0, or their known facts before the first write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends.helpers import convert, squeeze, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.values import TensorList
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


class NotScanned(Exception):
    """A loop's list is more than a scan output; `item` is the written element."""

    def __init__(self, index: int, item: Value | None) -> None:
        self.index, self.item = index, item
        super().__init__()


def list_of(v: object) -> TensorList:
    """Return an operand that must be a tensor list; ModelError for others."""
    if not isinstance(v, TensorList):
        raise ModelError(f"expected a tensor list, got a {getattr(v, 'what', 'tensor')}")
    return v


def with_elements(stated: TensorList, stacked: Value) -> TensorList:
    """Return a list like `stated` with the elements of `stacked` along axis 0."""
    return replace(stated, stacked=stacked, written=None, mark=None)


def elements(b: Builder, v: TensorList) -> Value:
    """Return the elements along axis 0. NotScanned if they are complete only after the loop."""
    if v.stacked is not None:
        return v.stacked
    if v.mark is not None:
        raise NotScanned(v.mark, v.written[1] if v.written is not None else None)
    if v.written is not None:
        raise AssertionError("a list outside of a loop is written at once")
    return _filled(b, v, _stated(v).dims)


def _stated(v: TensorList) -> TensorType:
    if v.dims is None or DYN in v.dims:
        raise NotSupported("a tensor list whose elements' dims are not known")
    return TensorType(v.dtype, v.dims)


def zeros(b: Builder, v: TensorList, extents: Sequence[int | Value] | None) -> TensorList:
    """Return a list of zeros; `extents` are those of an element, numbers or 1-D tensors."""
    return with_elements(v, _filled(b, v, _stated(v).dims if extents is None else extents))


def _filled(b: Builder, v: TensorList, extents: Sequence[int | Value]) -> Value:
    size = b.const(v.size)
    zero = b.literal(np.zeros((1,) * (1 + len(extents)), v.dtype.np))
    known = [d for d in extents if isinstance(d, int)]
    if size is not None and len(known) == len(extents):
        return b.multibroadcast(zero, [int(size), *known])
    parts = [unsqueeze(b, convert(b, v.size, INT64), [0])]
    parts += [b.ints([d]) if isinstance(d, int) else d for d in extents]
    dims = [
        DYN if size is None else int(size),
        *(d if isinstance(d, int) else DYN for d in extents),
    ]
    found = TensorType(v.dtype, tuple(dims))
    return b.op("broadcast_with_dims", zero, b.concat(parts, axis=0), results=[found])


def item_at(b: Builder, v: TensorList, index: Value) -> Value:
    """Return the element of a list at an index."""
    found = elements(b, v)
    if b.dims(found)[0] == 0:
        raise ModelError("a tensor list without elements is read")
    return squeeze(b, b.scan_slice(found, convert(b, index, INT64), axis=0), [0])


def written(b: Builder, v: TensorList, index: Value, item: Value) -> TensorList:
    """Return the list with a new element at `index`."""
    if v.stacked is None and v.mark is not None and v.written is None:
        return replace(v, written=(index, item))
    if v.stacked is None and v.mark is None and (v.dims is None or DYN in v.dims):
        v = zeros(b, v, [b.shape(item, i, i + 1) if d == DYN else d
                         for i, d in enumerate(b.dims(item))])  # fmt: skip
    stacked = elements(b, v)
    if b.dims(stacked)[0] == 0:
        raise NotSupported("a write beyond the end of a tensor list, which makes it longer")
    at = unsqueeze(b, convert(b, index, INT64), [0, 1])
    found = b.op("scatternd_none", stacked, at, unsqueeze(b, item, [0]))
    return with_elements(v, found)

"""Tensor lists: their elements along an axis 0, or what is known while nothing is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mgx_mlir.core.build import Builder
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends.helpers import Value, convert, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.values import TensorList


class NotScanned(Exception):
    """A list of a loop is more than written once an iteration; `element` is what it holds."""

    def __init__(self, index: int | None, element: TensorType | None) -> None:
        self.index, self.element = index, element
        super().__init__()


def list_of(v: Any) -> TensorList:
    if not isinstance(v, TensorList):
        raise ModelError(f"expected a tensor list, got a {getattr(v, 'what', 'tensor')}")
    return v


def with_elements(stated: TensorList, stacked: Value) -> TensorList:
    return replace(stated, stacked=stacked, written=None, mark=None)


def elements(b: Builder, v: TensorList) -> Value:
    """The elements along axis 0. NotScanned where a loop has them only when it is done."""
    if v.stacked is not None:
        return v.stacked
    if v.mark is not None:
        item = v.written[1] if v.written is not None else None
        raise NotScanned(v.mark, None if item is None else TensorType.of(item))
    if v.written is not None:
        raise AssertionError("a list outside of a loop is written at once")
    return _filled(b, v, _stated(v))


def _stated(v: TensorList) -> TensorType:
    if v.dims is None or DYN in v.dims:
        raise NotSupported("a tensor list whose elements' dims are not known")
    return TensorType(v.dtype, v.dims)


def zeros(b: Builder, v: TensorList, element: TensorType | None) -> TensorList:
    """The list of as many zeros; `element` is the type of what will be written."""
    if element is None or not element.is_static:
        element = _stated(v)
    return with_elements(v, _filled(b, v, element))


def _filled(b: Builder, v: TensorList, element: TensorType) -> Value:
    size = b.const(v.size)
    zero = np.zeros((1,) * (1 + element.rank), element.dtype.np)
    if size is not None:
        return b.multibroadcast(b.literal(zero), [int(size), *element.dims])
    dims = b.concat([unsqueeze(b, convert(b, v.size, INT64), [0]), b.ints(element.dims)], axis=0)
    return b.op("broadcast_with_dims", b.literal(zero), dims)


def item_at(b: Builder, v: TensorList, index: Value) -> Value:
    return b.gather(elements(b, v), convert(b, index, INT64), axis=0)


def written(b: Builder, v: TensorList, index: Value, item: Value) -> TensorList:
    """The list with another element at `index`."""
    if v.stacked is None and v.mark is not None and v.written is None:
        return replace(v, written=(index, item))
    if v.stacked is None and v.mark is None and (v.dims is None or DYN in v.dims):
        t = TensorType.of(item)
        if not t.is_static:
            raise NotSupported("a tensor list of elements of dynamic dims")
        v = zeros(b, v, t)
    stacked = elements(b, v)
    at = unsqueeze(b, convert(b, index, INT64), [0, 1])
    found = b.op("scatternd_none", stacked, at, unsqueeze(b, item, [0]))
    return with_elements(v, found)

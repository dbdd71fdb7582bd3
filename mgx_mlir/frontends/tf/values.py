"""Values of a graph that are no tensors: resources, tables, tensor lists, strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.frontends.values import HostValue, Value


@dataclass(frozen=True)
class Resource(HostValue):
    """A variable, by the name of its node; `read` returns its array."""

    name: str
    dtype: DType | None
    read: Callable[[], np.ndarray]
    what = "resource"


@dataclass(frozen=True)
class Table(HostValue):
    """A hash table: its keys in order, and the value of each."""

    keys: np.ndarray
    values: np.ndarray
    what = "table"


@dataclass(frozen=True)
class Strings(HostValue):
    """A constant of strings."""

    array: np.ndarray
    what = "string"


@dataclass(frozen=True)
class Complex(HostValue):
    """A tensor of complex numbers as two of real ones, of one type and of equal dims."""

    re: Value
    im: Value
    what = "tensor of complex numbers"


@dataclass(frozen=True)
class TensorList(HostValue):
    """A list of tensors of one type.

    `stacked` holds its elements along axis 0, None before the first write. Until then `dtype`,
    `dims` (None: unknown rank) and `size` (a 0-d tensor) are the requested ones. In the body of a
    loop, `mark` is the index of the loop variable of an unwritten list, and `written` the index and
    the element that the iteration writes.
    """

    dtype: DType
    dims: tuple[int, ...] | None
    size: Value
    stacked: Value | None = None
    mark: int | None = None
    written: tuple[Value, Value] | None = None
    what = "tensor list"

    def marked(self, index: int) -> TensorList:
        """Return the list as loop variable `index`."""
        return replace(self, mark=index, written=None)

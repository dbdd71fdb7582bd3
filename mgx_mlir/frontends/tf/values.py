"""Values of a graph that are no tensors: resources, tensor lists, strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import DType

POISON: Any = object()  # a value whose node failed: its users are skipped without a message


class HostValue:
    """A value that no tensor of the program stands for."""

    what = "value"


@dataclass(frozen=True)
class Resource(HostValue):
    """A variable, by the name of the node that makes it; `read` gives its array."""

    name: str
    dtype: DType | None
    read: Callable[[], np.ndarray]
    what = "resource"


@dataclass(frozen=True)
class Strings(HostValue):
    """A constant of text."""

    array: np.ndarray
    what = "string"


@dataclass(frozen=True)
class TensorList(HostValue):
    """A list of tensors of one type.

    `stacked` holds its elements along axis 0; None while none is written: then `dtype`, `dims`
    (None: unknown rank) and `size` (a 0-d tensor) are what was asked for. In the body of a loop
    `mark` is the loop variable that an unwritten list is, `written` the place and the element
    that the iteration writes.
    """

    dtype: DType
    dims: tuple[int, ...] | None
    size: Any
    stacked: Any = None
    mark: int | None = None
    written: tuple[Any, Any] | None = None
    what = "tensor list"

    def marked(self, index: int) -> TensorList:
        return replace(self, mark=index, written=None)


def is_host(v: Any) -> bool:
    return isinstance(v, HostValue)


def has_failed(values: Sequence[Any]) -> bool:
    return any(v is POISON for v in values)

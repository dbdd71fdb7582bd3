"""Conversion of a caller's value to an array of the input's type."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import DType


class NotOfType(ValueError):
    """A number that the type does not have."""


def plain_array(value: object, dtype: DType) -> np.ndarray:
    """Convert Python numbers and lists of them to an array of a type.

    Errors: NotOfType for values that the type lacks (1.5 and NaN for an int8, 2 for a bool);
    ValueError for lists that are no array; TypeError, OverflowError.
    """
    found = np.asarray(value, dtype=dtype.np) if dtype.is_float else np.asarray(value)
    if dtype.is_float or found.dtype == dtype.np:
        return found
    if found.size == 0:
        return found.astype(dtype.np)
    if found.dtype.kind not in "biuf":
        found = np.asarray(value, dtype=dtype.np)
    with np.errstate(invalid="ignore"):
        made = found.astype(dtype.np)
    if not np.array_equal(made, found):  # NaN is no integer: it differs from itself
        raise NotOfType(f"expected values of {dtype.name}, got values that it cannot represent")
    return made


def native(array: np.ndarray) -> np.ndarray:
    """Return the array in this machine's byte order, bools with the bytes 0 and 1 alone.

    Compiled code tests a bool's lowest bit, numpy any bit; a view of other bytes can have any bits.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == np.bool_ and array.size:
        raw = array.view(np.uint8)
        if raw.max() > 1:
            return raw != 0
    return array

"""TensorFlow's numbers of element types."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import UnsupportedModel

_KNOWN = {
    1: dtypes.FLOAT, 2: dtypes.DOUBLE, 3: dtypes.INT32, 4: dtypes.UINT8, 5: dtypes.INT16,
    6: dtypes.INT8, 9: dtypes.INT64, 10: dtypes.BOOL, 14: dtypes.BF16, 17: dtypes.UINT16,
    19: dtypes.HALF, 22: dtypes.UINT32, 23: dtypes.UINT64, 24: dtypes.FP8E5M2,
    25: dtypes.FP8E4M3FN,
}  # fmt: skip
# quantised types become the integers that store them
_QUANTISED = {
    11: dtypes.INT8, 12: dtypes.UINT8, 13: dtypes.INT32, 15: dtypes.INT16, 16: dtypes.UINT16,
}  # fmt: skip
COMPLEX = {8: 1, 18: 2}  # numbers of complex types -> those of their parts
STRING, RESOURCE, VARIANT = 7, 20, 21
_OTHER = {
    0: "invalid", STRING: "string", 8: "complex64", 11: "qint8", 12: "quint8", 13: "qint32",
    15: "qint16", 16: "quint16", 18: "complex128", RESOURCE: "resource", VARIANT: "variant",
    29: "int4", 30: "uint4",
}  # fmt: skip
_NUMBERS = {d: n for n, d in _KNOWN.items()}
_REFERENCE = 100  # offset of reference types' numbers


def known(number: int) -> DType | None:
    """Return the element type of a number, None if we have none."""
    plain = number - _REFERENCE if number > _REFERENCE else number
    return _KNOWN.get(plain, _QUANTISED.get(plain))


def name_of(number: int) -> str:
    """Return the name of TensorFlow's element type of this number."""
    found = known(number)
    return found.short if found is not None else _OTHER.get(number, f"number {number}")


def number_of(dtype: DType) -> int:
    """Return TensorFlow's number of an element type."""
    return _NUMBERS[dtype]


def tensor_dtype(number: int, what: str) -> DType:
    """Return the element type of a number. UnsupportedModel if we have none."""
    found = known(number)
    if found is None:
        raise UnsupportedModel(f"{what} has unsupported element type {name_of(number)}")
    return found

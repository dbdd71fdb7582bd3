"""Conversion of TensorProtos to numpy arrays: values in the message, or cut out of the file."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.frontends.files import bytes_of, check_size
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.dtypes import tensor_dtype
from mgx_mlir.frontends.wire import Stripped

MAX_BYTES = 1 << 40
MAX_RANK = 32  # numpy's limit before version 2
_CONTENT = 4  # the field tensor_content
MOST_REPEATED = 1 << 30  # most bytes of a model's constants that state fewer values than elements

_VALUES = {
    dtypes.FLOAT: "float_val", dtypes.DOUBLE: "double_val", dtypes.INT64: "int64_val",
    dtypes.BOOL: "bool_val", dtypes.UINT32: "uint32_val", dtypes.UINT64: "uint64_val",
    dtypes.HALF: "half_val", dtypes.BF16: "half_val", dtypes.FP8E5M2: "float8_val",
    dtypes.FP8E4M3FN: "float8_val",
}  # fmt: skip


def static_shape(shape: schema.TensorShape, what: str) -> tuple[int, ...]:
    """Return the dims of a shape that must be known. ModelError if it is unknown or invalid."""
    dims = tuple(d.size for d in shape.dim)
    if len(dims) > MAX_RANK:
        raise ModelError(f"{what} has {len(dims)} dims, expected at most {MAX_RANK}")
    if shape.unknown_rank or any(d < 0 for d in dims):
        raise ModelError(f"{what} expected known dims, got {shape_text(shape)}")
    return dims


def shape_text(shape: schema.TensorShape) -> str:
    """Return a shape for messages."""
    if shape.unknown_rank:
        return "an unknown rank"
    return "[" + ", ".join("?" if d.size < 0 else str(d.size) for d in shape.dim) + "]"


class TensorReader:
    """Reads the tensors of one file; every read gives a fresh, aligned, writable array."""

    def __init__(self, name: str, data: int | memoryview, stripped: Stripped) -> None:
        self._name, self._data, self._stripped = name, data, stripped
        self._repeated = 0  # bytes so far of constants that state fewer values than elements

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._data, int) and self._data >= 0:
            os.close(self._data)
            self._data = -1

    def read(self, tensor: schema.Tensor, what: str) -> np.ndarray:
        """Return the tensor's values. Raises ModelError or FileError, naming it, if it has none."""
        dtype = tensor_dtype(tensor.dtype, what)
        dims = static_shape(tensor.tensor_shape, what)
        count = math.prod(dims)
        nbytes = count * dtype.size
        if nbytes > MAX_BYTES:
            raise ModelError(f"{what} of dims {list(dims)}, {nbytes} bytes, is too large")
        content = tensor.tensor_content
        extent = self._stripped.extent_of(content)
        if extent is not None:
            fewer = extent.number != _CONTENT and extent.length < nbytes
            if not fewer or extent.length % dtype.size:
                check_size(extent.length, nbytes, dims, what)
            if fewer:
                self._count(nbytes, extent.length // dtype.size, dims, what)
            raw = bytes_of(self._data, extent.offset, extent.length, what, self._name)
            if fewer:
                return _repeated(raw.view(dtype.np), dims)
        elif content:
            check_size(len(content), nbytes, dims, what)
            raw = aligned_empty((nbytes,), np.dtype(np.uint8))
            raw[:] = np.frombuffer(content, np.uint8)
        else:
            return self._typed(tensor, dtype, dims, what)
        return as_array(raw, dtype, dims)

    def _count(self, nbytes: int, stated: int, dims: tuple[int, ...], what: str) -> None:
        """Count repeated values; ModelError if a small file expands to more memory than allowed."""
        self._repeated += nbytes
        if self._repeated > MOST_REPEATED:
            raise ModelError(f"{what} of dims {list(dims)} states {stated} values")

    def _typed(
        self, t: schema.Tensor, dtype: DType, dims: tuple[int, ...], what: str
    ) -> np.ndarray:
        """Return values in float_val and so on; the last one repeats for missing ones."""
        count = math.prod(dims)
        values = getattr(t, _VALUES.get(dtype, "int_val"))
        if len(values) > count:
            raise ModelError(
                f"{what} expected {count} values for dims {list(dims)}, got {len(values)}"
            )
        if len(values) < count:
            self._count(count * dtype.size, len(values), dims, what)
        if isinstance(values, bytes):
            got = np.frombuffer(values, np.uint8)
        else:
            got = np.fromiter(values, _hold(dtype), len(values))
            if not dtype.is_float:
                got = got.astype(dtype.np)
        if dtype.is_float and dtype.size < 4:
            got = got.astype(f"u{dtype.size}").view(dtype.np)  # bit patterns
        return _repeated(got, dims) if len(got) else np.zeros(dims, dtype.np)


def _repeated(got: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """Return values in row-major order; the last one repeats for missing ones."""
    out = aligned_empty(dims, got.dtype)
    flat = out.reshape(-1)
    flat[: len(got)] = got
    flat[len(got) :] = got[-1]
    return out


def _hold(dtype: DType) -> Any:
    if dtype in (dtypes.FLOAT, dtypes.DOUBLE, dtypes.INT64, dtypes.BOOL, dtypes.UINT64):
        return dtype.np
    return np.int64


def as_array(raw: np.ndarray, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    """Return little-endian bytes as an array."""
    if dtype.is_bool:
        return (raw != 0).reshape(dims)
    return raw.view(dtype.np).reshape(dims)

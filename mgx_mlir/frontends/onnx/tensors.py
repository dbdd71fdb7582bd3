"""Conversion of TensorProtos to numpy arrays: inline, cut out of the file, or external data."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import FileError, ModelError, ShapeError, UnsupportedModel
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.core.subbyte_types import BY_ONNX as NARROW
from mgx_mlir.core.subbyte_types import packed_bytes, unpacked
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.files import bytes_of, check_size, open_regular
from mgx_mlir.frontends.onnx.ahead import LEAST, ReadAhead
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.wire import Stripped

MAX_BYTES = 1 << 40
_TP = onnx.TensorProto
_FROM_INT32 = {
    _TP.INT32, _TP.INT16, _TP.INT8, _TP.UINT16, _TP.UINT8, _TP.BOOL, _TP.FLOAT16, _TP.BFLOAT16,
    _TP.FLOAT8E4M3FN, _TP.FLOAT8E4M3FNUZ, _TP.FLOAT8E5M2, _TP.FLOAT8E5M2FNUZ,
}  # fmt: skip


def tensor_dtype(number: int, what: str) -> DType:
    """Return the storage type of tensors of ONNX type `number` (core/subbyte_types.py)."""
    if number in NARROW:
        return NARROW[number].held
    try:
        return dtypes.from_onnx(number)
    except ShapeError:
        known = number in _TP.DataType.values()
        kind = _TP.DataType.Name(number) if known else f"number {number}"
        raise UnsupportedModel(f"{what} has unsupported element type {kind}") from None


def cast_number(number: int) -> DType:
    """Return the element type for an ONNX type number in an attribute; narrower types are
    refused.
    """
    if number in NARROW:
        raise NotSupported(f"element type {_TP.DataType.Name(number)}")
    try:
        return tensor_dtype(number, "attribute")
    except ModelError:
        known = number in _TP.DataType.values()
        kind = _TP.DataType.Name(number) if known else f"number {number}"
        raise NotSupported(f"element type {kind}") from None


class TensorReader:
    """Reads the tensors of one model; every read gives a fresh, aligned, writable array."""

    def __init__(
        self, name: str, data: int | memoryview, stripped: Stripped, folder: Path | None
    ) -> None:
        self._name, self._data, self._stripped, self._folder = name, data, stripped, folder
        self._open: dict[str, int] = {}
        self._ahead: ReadAhead | None = None
        self.digest: bytes | None = None  # digest of the tensor read last, if known

    def read_ahead(self, tensors: Iterable[onnx.TensorProto]) -> None:
        """Start to read tensors that will be needed."""
        if not isinstance(self._data, int):
            return
        self._end_ahead()
        extents = (self._stripped.extent_of(t.doc_string) for t in tensors)
        places = [(x.offset, x.length) for x in extents if x is not None]
        if any(n >= LEAST for _, n in places):
            self._ahead = ReadAhead(self._data, self._name, places)

    def _end_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def close(self) -> None:
        """Close the model's file and those of external data."""
        self._end_ahead()
        if isinstance(self._data, int) and self._data >= 0:
            os.close(self._data)
            self._data = -1
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def read(self, tensor: onnx.TensorProto, what: str = "") -> np.ndarray:
        """Return the tensor's values. Raises ModelError or FileError, naming it, if it has none."""
        what, self.digest = what or f"initializer '{tensor.name}'", None
        dtype = tensor_dtype(tensor.data_type, what)
        dims = tuple(tensor.dims)
        if any(d < 0 for d in dims):
            raise ModelError(f"{what} has a negative dimension: {list(dims)}")
        limits.rank(len(dims), what)
        limits.size(dims, what)
        count = math.prod(dims)
        if tensor.HasField("segment"):
            raise ModelError(f"{what} is stored in segments, which ONNX leaves undefined")
        packed = NARROW.get(tensor.data_type)
        nbytes = count * dtype.size if packed is None else packed_bytes(count, packed)
        if nbytes > MAX_BYTES:
            raise ModelError(f"{what} of {nbytes} bytes is too large")
        if tensor.data_location == _TP.EXTERNAL:
            raw = self._external(tensor, nbytes, what)
        elif (extent := self._stripped.extent_of(tensor.doc_string)) is not None:
            check_size(extent.length, nbytes, dims, what)
            found = None if self._ahead is None else self._ahead.take(extent.offset, nbytes)
            if found is not None and packed is None and not dtype.is_bool:
                raw, self.digest = found
            else:
                raw = bytes_of(self._data, extent.offset, nbytes, what, self._name)
        elif tensor.HasField("raw_data"):
            check_size(len(tensor.raw_data), nbytes, dims, what)
            raw = aligned_empty((nbytes,), np.dtype(np.uint8))
            raw[:] = np.frombuffer(tensor.raw_data, np.uint8)
        else:
            return self._typed(tensor, dtype, count, what).reshape(dims)
        if packed is not None:
            return unpacked(raw, count, packed).reshape(dims)
        if sys.byteorder == "big" and dtype.size > 1:
            raw.view(f"u{dtype.size}").byteswap(inplace=True)
            self.digest = None
        if dtype.is_bool:
            return (raw != 0).reshape(dims)
        return raw.view(dtype.np).reshape(dims)

    def sparse(self, tensor: onnx.SparseTensorProto, what: str) -> np.ndarray:
        """Return a sparse tensor's elements, zeros included; ModelError if they do not fit."""
        values = self.read(tensor.values, f"values of {what}")
        indices = self.read(tensor.indices, f"indices of {what}")
        dims = tuple(tensor.dims)
        if any(d < 0 for d in dims):
            raise ModelError(f"{what} has dims {list(dims)}")
        limits.table(dims, what, values.itemsize)
        dense = np.zeros(dims, values.dtype)
        flat = indices
        if indices.ndim == 2 and indices.shape[1] == len(dims):
            bad = ((indices < 0) | (indices >= np.array(dims))).any()
            flat = np.array([-1]) if bad else np.ravel_multi_index(tuple(indices.T), dims)
        if flat.size != values.size or ((flat < 0) | (flat >= dense.size)).any():
            raise ModelError(f"{what} has indices out of range")
        dense.reshape(-1)[flat] = values.reshape(-1)
        return dense

    def _typed(self, t: onnx.TensorProto, dtype: DType, count: int, what: str) -> np.ndarray:
        """Return values in float_data, int32_data and so on."""
        kind = t.data_type
        if kind == _TP.FLOAT:
            values, hold = t.float_data, np.float32
        elif kind == _TP.DOUBLE:
            values, hold = t.double_data, np.float64
        elif kind == _TP.INT64:
            values, hold = t.int64_data, np.int64
        elif kind in (_TP.UINT32, _TP.UINT64):
            values, hold = t.uint64_data, np.uint64
        elif kind in _FROM_INT32 or kind in NARROW:
            values, hold = t.int32_data, np.int32
        else:
            raise ModelError(f"{what} has no data")
        stored = packed_bytes(count, NARROW[kind]) if kind in NARROW else count
        if len(values) != stored:
            raise ModelError(
                f"{what} expected {stored} values for dims {list(t.dims)}, got {len(values)}"
            )
        got = np.fromiter(values, hold, len(values))
        if kind in NARROW:
            return unpacked(got.astype(np.uint8), count, NARROW[kind])
        if dtype.is_bool:
            return got != 0
        if dtype.is_float and dtype.size < 4:
            return got.astype(f"u{dtype.size}").view(dtype.np)  # bit patterns of narrow floats
        return got.astype(dtype.np)

    def _external(self, tensor: onnx.TensorProto, nbytes: int, what: str) -> np.ndarray:
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        if not location:
            raise ModelError(f"{what} is external data without a location")
        if self._folder is None:
            raise ModelError(
                f"{what} is external data, but the model has no folder",
                notes=["give external_data_path"],
            )
        offset = _number(entries, "offset", 0, what)
        length = _number(entries, "length", nbytes, what)
        check_size(length, nbytes, tuple(tensor.dims), what)
        fd = self._external_file(location, what)
        size = os.fstat(fd).st_size
        if offset + nbytes > size:
            raise FileError(
                f"{what} expected {nbytes} bytes at offset {offset} of '{location}', which has "
                f"{size}"
            )
        return bytes_of(fd, offset, nbytes, what, location)

    def _external_file(self, location: str, what: str) -> int:
        if location in self._open:
            return self._open[location]
        assert self._folder is not None
        given = Path(location)
        outside = ModelError(
            f"{what} is external data outside the model's folder: '{location}'",
            notes=["a location is a relative path without '..' or links that lead elsewhere"],
        )
        if given.is_absolute() or ".." in given.parts or "\0" in location or "\\" in location:
            raise outside
        try:
            root = self._folder.resolve(strict=True)
            path = (root / given).resolve(strict=True)
        except (OSError, RuntimeError):
            raise FileError(
                f"{what}: no such external data file '{location}' in {self._folder}"
            ) from None
        if root != path and root not in path.parents:
            raise outside
        fd = self._open[location] = open_regular(os.fspath(path))
        return fd


def _number(entries: dict[str, str], key: str, default: int, what: str) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise ModelError(f"{what} has {key} '{text}', expected a number of bytes")
    return int(text)

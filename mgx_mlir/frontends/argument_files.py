"""Inputs from files: .npy, .npz, ONNX TensorProtos and MIGraphX's saved arguments.

Files are untrusted: no allocation exceeds the file's or the input's size, and no code in a file
runs.
"""

from __future__ import annotations

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, MgxError, ShapeError
from mgx_mlir.core.files import read_bytes
from mgx_mlir.programs.signature import Port

SUFFIXES = (".npy", ".npz", ".pb", ".msgpack")
_LARGEST = 1 << 32  # largest .npz member in bytes for an input without a known size
_HEADER = 1 << 16


def read_argument(path: str | os.PathLike[str], port: Port) -> np.ndarray:
    """Read the array of an input from a file: by suffix, else in the form of MIGraphX's
    argument.save.

    In an .npz it is the array with the input's name, or the only one. Errors: FileError for an
    unreadable file, and for a type or dims that differ from the input's.
    """
    name = os.fspath(path)
    view = read_bytes(name)
    suffix = Path(name).suffix.lower()
    try:
        if suffix == ".npy":
            found = _npy(view, port)
        elif suffix == ".npz":
            found = _npz(view, port)
        elif suffix == ".pb":
            found = _tensor_proto(view, port)
        else:
            found = _saved(name)
    except FileError as e:
        raise FileError(e.message, location=e.location or name, notes=e.notes) from None
    except (MgxError, ValueError, TypeError, KeyError, EOFError, OSError, zlib.error,
            zipfile.BadZipFile, NotImplementedError, RuntimeError, SyntaxError,
            tokenize.TokenError, struct.error, OverflowError, LookupError, UnicodeError,
            AttributeError, AssertionError) as e:  # fmt: skip
        text = (e.message if isinstance(e, MgxError) else str(e)) or type(e).__name__
        raise FileError(
            f"not a readable {suffix or 'argument'} file: {text.splitlines()[0].lower()}",
            location=name,
        ) from None
    except MemoryError:
        raise FileError("the array is larger than memory", location=name) from None
    return _fitting(found, port, name)


def _npy(view: memoryview, port: Port) -> np.ndarray:
    """Return the array over the bytes of an .npy file."""
    head = io.BytesIO(bytes(view[:_HEADER]))
    version = np.lib.format.read_magic(head)
    if version == (1, 0):
        dims, by_column, dtype = np.lib.format.read_array_header_1_0(head)
    else:
        dims, by_column, dtype = np.lib.format.read_array_header_2_0(head)
    if dtype.hasobject:
        raise FileError("expected an array of numbers, got objects")
    if dtype.itemsize == 0 or any(d < 0 for d in dims):
        raise FileError(f"expected an array of numbers, got {dtype} {list(dims)}")
    _check_size(math.prod(dims) * dtype.itemsize, port)
    data, size = view[head.tell() :], math.prod(dims) * dtype.itemsize
    if len(data) < size:
        raise FileError(f"the file ends early: expected {size} bytes, got {len(data)}")
    flat = np.frombuffer(data, dtype, math.prod(dims)) if size else np.zeros(0, dtype)
    return flat.reshape(dims, order="F" if by_column else "C")


def _npz(view: memoryview, port: Port) -> np.ndarray:
    with zipfile.ZipFile(io.BytesIO(view)) as archive:
        names = {n.removesuffix(".npy"): n for n in archive.namelist() if n.endswith(".npy")}
        chosen = names.get(port.name)
        if chosen is None and len(names) == 1:
            chosen = next(iter(names.values()))
        if chosen is None:
            has = ", ".join(sorted(names)[:8]) or "none"
            raise FileError(f"the file has no array '{port.name}'", notes=[f"it has: {has}"])
        info = archive.getinfo(chosen)
        most = _nbytes(port)
        if info.file_size > (_LARGEST if most is None else most + _HEADER):
            raise FileError(f"'{chosen}' has {info.file_size} bytes, input '{port.name}' is {port}")
        with archive.open(info) as f:
            return _npy(memoryview(f.read()), port)


def _tensor_proto(view: memoryview, port: Port) -> np.ndarray:
    # onnx takes long to load
    import onnx
    from google.protobuf.message import DecodeError

    try:
        tensor = onnx.TensorProto.FromString(bytes(view))
    except DecodeError as e:
        raise FileError(f"not an ONNX TensorProto: {str(e).lower() or 'cannot be decoded'}") from e
    if not tensor.data_type:
        raise FileError("not an ONNX TensorProto: it has no element type")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise FileError("the data of the tensor is in another file, expected it in this one")
    dtype = dtypes.from_onnx(tensor.data_type)
    if any(d < 0 for d in tensor.dims):
        raise FileError(f"the tensor has a negative dimension: {list(tensor.dims)}")
    _check_size(math.prod(tensor.dims) * dtype.size, port)
    return onnx.numpy_helper.to_array(tensor)


def _saved(name: str) -> np.ndarray:
    # not imported at start-up: only the file's frontend is loaded
    from mgx_mlir.frontends.mxr.reader import load_argument

    found = load_argument(name)
    if isinstance(found, tuple):
        raise FileError(f"expected one array, got a tuple of {len(found)}")
    return found


def _nbytes(port: Port) -> int | None:
    return math.prod(port.dims) * dtypes.from_name(port.dtype).size if port.is_static else None


def _check_size(nbytes: int, port: Port) -> None:
    """Raise FileError for a file of more than twice the input's bytes: it belongs to another
    input.
    """
    most = _nbytes(port)
    if nbytes > (1 << 40 if most is None else 2 * most + 64):
        raise FileError(f"the array has {nbytes} bytes, input '{port.name}' is {port}")


def _fitting(found: np.ndarray, port: Port, name: str) -> np.ndarray:
    """Convert the array to the input's type. FileError for another type or other dims."""
    want = dtypes.from_name(port.dtype).np
    array: Any = found
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # numpy writes the types that it does not know as bytes
    if array.dtype != want and array.dtype.kind == "V" and array.dtype.itemsize == want.itemsize:
        array = np.ascontiguousarray(array).view(want)
    fits = array.ndim == len(port.dims) and all(
        d in (-1, n) for d, n in zip(port.dims, array.shape, strict=True)
    )
    if not fits or (array.dtype != want and not port.element):
        try:
            kind = dtypes.from_numpy(array.dtype).name
        except ShapeError:
            kind = str(array.dtype)
        have = ", ".join(map(str, array.shape))
        raise FileError(f"input '{port.name}' is {port}, got {kind} {{{have}}}", location=name)
    return array

"""The weights of a module beside its text: an .npz of arrays by the keys that literals name."""

from __future__ import annotations

import io
import math
import os
import zipfile
from typing import IO, Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic, read_bytes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore, is_literal

SMALL = 64 << 20  # bytes of arrays that any file may hold
MOST_EXPANDED = 50  # times the size of a compressed file


def weights_beside(path: str | os.PathLike[str]) -> str:
    """Return the path of the weights of a module or script: `m.mlir` -> `m.mlir.npz`.

    Writers use it, and so do readers without another file.
    """
    return f"{os.fspath(path)}.npz"


def used_keys(module: ir.Operation) -> set[str]:
    """Return the keys of stored weights that literals of a module refer to."""
    keys: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_literal(op) and "key" in op.attributes:
            keys.add(ir.StringAttr(op.attributes["key"]).value)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return keys


def read_weights(path: str | None) -> WeightStore:
    """Read the arrays of an .npz by key. Types that numpy lacks are stored as bytes under
    `key:dtype`.
    """
    if path is None:
        return WeightStore()
    arrays: dict[str, np.ndarray] = {}
    source = io.BytesIO(read_bytes(path))
    try:
        _check_size(source, path)
        source.seek(0)
        with np.load(source, allow_pickle=False) as data:
            for name in data.files:
                key, colon, kind = name.partition(":")
                array = data[name]
                array = array.view(dtypes.from_name(kind).np) if colon else array
                dtypes.from_numpy(array.dtype)
                arrays[key] = array
    except FileError:
        raise
    except Exception as e:  # zipfile, zlib and numpy raise many kinds of errors for a damaged file
        why = str(e).splitlines()[0][:200] if str(e) else type(e).__name__
        raise FileError(f"'{path}' is not an .npz of weights: {why}") from None
    for array in arrays.values():
        array.flags.writeable = False
    return WeightStore(arrays)


def _check_size(source: io.BytesIO, path: str) -> None:
    """Raise FileError for arrays that decompress to far more than the file's size.

    Checks the sizes in the archive and in the head of each array, by which numpy allocates.
    """
    length = source.getbuffer().nbytes
    most = max(SMALL, MOST_EXPANDED * length)
    with zipfile.ZipFile(source) as archive:
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        for entry in entries:
            with archive.open(entry) as f:
                stated = npy_bytes(f)
                if stated > entry.file_size:
                    raise ValueError(f"'{entry.filename}' is shorter than its header says")
    if size > most:
        raise FileError(f"'{path}' expands to {size} bytes, which is implausible for its size")


def npy_bytes(f: IO[bytes]) -> int:
    """Return the number of data bytes in an .npy header. ValueError for object arrays."""
    version = np.lib.format.read_magic(f)
    read = np.lib.format
    reader = read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0
    dims, _, dtype = reader(f)
    if dtype.hasobject or any(d < 0 for d in dims):
        raise ValueError("expected arrays of numbers, got pickled objects")
    return math.prod(dims) * dtype.itemsize


def write_weights(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Write an .npz that `--weights` reads."""
    stored: dict[str, Any] = {}
    for key, array in arrays.items():
        plain = dtypes.is_numpys(array.dtype)
        name = key if plain else f"{key}:{dtypes.from_numpy(array.dtype).name}"
        stored[name] = array if plain else array.view(f"u{array.dtype.itemsize}")
    try:
        with atomic(path) as f:
            np.savez(f, **stored)
    except OSError as e:
        raise FileError(f"cannot write '{path}': {e.strerror}") from None

"""The weights of a module beside its text: an .npz of arrays by the keys that literals name."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore

SMALL = 64 << 20  # bytes of arrays that any file may hold
MOST_EXPANDED = 50  # times the size of a compressed file


def used_keys(module: ir.Operation) -> set[str]:
    """The keys of stored weights that literals of a module refer to."""
    keys: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "migraphx.literal" and "key" in op.attributes:
            keys.add(ir.StringAttr(op.attributes["key"]).value)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return keys


def read_weights(path: str | None) -> WeightStore:
    """The arrays of an .npz by key; types that numpy lacks are stored as `key:dtype` bytes."""
    if path is None:
        return WeightStore()
    from mgx_mlir.core import dtypes

    try:
        _check_size(path)
        with np.load(path, allow_pickle=False) as data:
            arrays: dict[str, np.ndarray] = {}
            for name in data.files:
                key, colon, kind = name.partition(":")
                array = data[name]
                arrays[key] = array.view(dtypes.from_name(kind).np) if colon else array
    except OSError as e:
        raise FileError(f"cannot open '{path}': {e.strerror or e}") from None
    except FileError:
        raise
    except Exception as e:  # zipfile and numpy raise of many kinds on a damaged file
        raise FileError(f"'{path}' is not an .npz of weights: {e}") from None
    for array in arrays.values():
        array.flags.writeable = False
    return WeightStore(arrays)


def _check_size(path: str) -> None:
    """FileError for arrays that compression makes out to be far more than the file is."""
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > max(SMALL, MOST_EXPANDED * os.path.getsize(path)):
        raise FileError(f"'{path}' holds {size} bytes once expanded, more than can be meant")


def write_weights(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Write what --weights reads."""
    from mgx_mlir.core import dtypes

    stored: dict[str, Any] = {}
    for key, array in arrays.items():
        plain = array.dtype.kind in "biuf"
        name = key if plain else f"{key}:{dtypes.from_numpy(array.dtype).name}"
        stored[name] = array if plain else array.view(f"u{array.dtype.itemsize}")
    try:
        with atomic(path) as f:
            np.savez(f, **stored)
    except OSError as e:
        raise FileError(f"cannot write '{path}': {e.strerror}") from None

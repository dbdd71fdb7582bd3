"""Option values as text for keys of the cache: two values that differ have two texts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np


def option_text(value: Any) -> str:
    """Write a value as text without loss. Errors: TypeError for other kinds of values.

    `repr` would not do for other values: it shortens long arrays, may omit fields of a class, and
    gives objects an address that another object may reuse.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, os.PathLike):
        return f"path {os.fspath(value)!r}"
    if isinstance(value, np.ndarray | np.generic):
        return _array_text(np.asarray(value))
    if hasattr(value, "key_parts"):  # the API's `shape` and `dynamic_dimension`
        return f"{type(value).__name__} {option_text(value.key_parts())}"
    if is_dataclass(value) and not isinstance(value, type):
        held = [(f.name, getattr(value, f.name)) for f in fields(value)]
        return f"{type(value).__qualname__} {option_text(held)}"
    if isinstance(value, Enum):
        return f"{type(value).__qualname__} {value.name}"
    if isinstance(value, Mapping):
        rows = sorted((option_text(k), option_text(v)) for k, v in value.items())
        return "{" + ", ".join(f"{k}: {v}" for k, v in rows) + "}"
    if isinstance(value, Set):
        return "set [" + ", ".join(sorted(map(option_text, value))) + "]"
    if isinstance(value, bytearray | memoryview):
        return f"bytes {bytes(value)!r}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(option_text, value)) + "]"
    if hasattr(value, "__array__"):
        return _array_text(np.asarray(value))
    raise TypeError(f"cannot write as text: {type(value).__name__}")


def _array_text(a: np.ndarray) -> str:
    if a.dtype.hasobject:
        return f"objects {list(a.shape)} {option_text(a.reshape(-1).tolist())}"
    # `str` has the byte order; only `name` has the types of ml_dtypes
    return f"{a.dtype.name} {a.dtype.str}{list(a.shape)} {a.tobytes().hex()}"

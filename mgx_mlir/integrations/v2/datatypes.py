"""Element types of the protocol, and their tensors as JSON and as bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.programs.signature import Port

BYTES = "BYTES"
DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
_NAMES = {
    "bool_type": "BOOL", "half_type": "FP16", "float_type": "FP32", "double_type": "FP64",
    "bf16_type": "BF16",
}  # fmt: skip
MOST_DIMS = 32


class Constant(str):
    """A constant that Python's json writes although it is no JSON: NaN, Infinity or -Infinity."""


_MOST_BYTES = 1 << 62
# infinity and NaN are no JSON numbers: these strings, as in the JSON mapping of protocol buffers
INFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def datatype_of(port: Port) -> str:
    """Return the protocol's name of a port's element type; "" if it has none."""
    if port.text:
        return BYTES
    name = _NAMES.get(port.dtype, port.dtype.removesuffix("_type").upper())
    return name if name in DTYPES and not port.element else ""


def checked_shape(name: str, shape: object) -> tuple[int, ...]:
    """Return a tensor's dims. Errors: V2Error for values that are no sizes."""
    if not isinstance(shape, list) or len(shape) > MOST_DIMS:
        raise V2Error(f"input '{name}': 'shape' expected a list of at most {MOST_DIMS} sizes")
    if any(isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 1 << 48 for n in shape):
        raise V2Error(f"input '{name}': 'shape' expected sizes, got {str(shape)[:80]}")
    # numpy multiplies the other dims of an empty array too, and can overflow
    if math.prod(n for n in shape if n) * 8 >= _MOST_BYTES:
        raise V2Error(f"input '{name}': 'shape' expected fewer than 2^59 elements, got {shape}")
    return tuple(shape)


def from_bytes(name: str, datatype: str, shape: tuple[int, ...], data: memoryview) -> np.ndarray:
    """Return a tensor of raw bytes. Errors: V2Error if their number does not fit the dims."""
    count = math.prod(shape)
    if datatype == BYTES:
        return _texts(name, count, data).reshape(shape)
    dtype = DTYPES[datatype]
    if len(data) != count * dtype.itemsize:
        raise V2Error(
            f"input '{name}': expected {count * dtype.itemsize} bytes for {datatype}{list(shape)}, "
            f"got {len(data)}"
        )
    raw = np.frombuffer(data, np.uint8)
    return (raw != 0 if datatype == "BOOL" else raw.view(dtype)).reshape(shape)


def _texts(name: str, count: int, data: memoryview) -> np.ndarray:
    found: list[str] = []
    at = 0
    while at + 4 <= len(data) and len(found) < count:
        (size,) = struct.unpack_from("<I", data, at)
        if size > len(data) - at - 4:
            break
        found.append(_text(name, bytes(data[at + 4 : at + 4 + size])))
        at += 4 + size
    if len(found) != count or at != len(data):
        raise V2Error(f"input '{name}': expected {count} strings with their lengths")
    return _objects(found)


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise V2Error(f"input '{name}': expected strings in UTF-8") from None


def from_json(name: str, datatype: str, shape: tuple[int, ...], data: object) -> np.ndarray:
    """Return a tensor of JSON values, flat or nested. Errors: V2Error."""
    flat = _flat(name, data)
    count = math.prod(shape)
    if len(flat) != count:
        raise V2Error(f"input '{name}': expected {count} values for {list(shape)}, got {len(flat)}")
    if datatype == BYTES:
        if not all(type(v) is str and is_unicode(v) for v in flat):
            raise V2Error(f"input '{name}': expected strings of Unicode")
        return _objects(flat).reshape(shape)
    dtype = DTYPES[datatype]
    is_float = datatype != "BOOL" and dtype.kind not in "iu"
    infinite: list[int] = []
    types = set(map(type, flat))
    if is_float and types & {str, Constant}:
        infinite = [i for i, v in enumerate(flat) if isinstance(v, str) and v in INFINITE]
        flat = [*flat]
        for i in infinite:
            flat[i] = INFINITE[flat[i]]
        types = set(map(type, flat))
    if not types <= ({bool} if datatype == "BOOL" else {int, float} if is_float else {int}):
        raise V2Error(f"input '{name}': expected values of {datatype}")
    try:
        with np.errstate(over="ignore"):
            found = np.array(flat, dtype).reshape(shape)
    except (OverflowError, ValueError):
        raise V2Error(f"input '{name}': a value is beyond {datatype}") from None
    if is_float and np.count_nonzero(~np.isfinite(found)) > len(infinite):  # a number became one
        raise V2Error(f"input '{name}': a value is beyond {datatype}")
    return found


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded; JSON may name halves of surrogate pairs."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _objects(values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _flat(name: str, data: object) -> list[Any]:
    """Return nested lists as a flat one. Errors: V2Error for other values, and lists too deep."""
    if not isinstance(data, list):
        raise V2Error(f"input '{name}': 'data' expected a list")
    found: list[Any] = data
    for _ in range(MOST_DIMS):
        types = set(map(type, found))
        if list not in types:
            return found
        if types != {list}:
            raise V2Error(f"input '{name}': 'data' mixes lists and values")
        found = [v for inner in found for v in inner]
    raise V2Error(f"input '{name}': 'data' nests deeper than {MOST_DIMS} lists")


def datatype_name(array: np.ndarray) -> str:
    """Return the protocol's name of an array's type. Errors: V2Error if it has none."""
    if array.dtype.kind in "OUT":
        return BYTES
    found = next((n for n, d in DTYPES.items() if d == array.dtype), None)
    if found is None:
        raise V2Error(f"the protocol has no type for {array.dtype.name}", 500)
    return found


def to_bytes(array: np.ndarray) -> bytes:
    """Return a tensor's raw bytes."""
    if array.dtype.kind in "OUT":
        texts: Sequence[bytes] = [str(v).encode() for v in array.reshape(-1).tolist()]
        return b"".join(struct.pack("<I", len(t)) + t for t in texts)
    return np.ascontiguousarray(array).tobytes()


def to_json(array: np.ndarray) -> list[Any]:
    """Return a tensor's values as a flat list; infinity and NaN as `INFINITE` names them."""
    if array.dtype.kind in "OUT":
        return [str(v) for v in array.reshape(-1).tolist()]
    if array.dtype == DTYPES["BF16"]:
        array = array.astype(np.float32)
    flat = array.reshape(-1)
    found: list[Any] = flat.tolist()
    if flat.dtype.kind == "f":
        for i in np.flatnonzero(~np.isfinite(flat)).tolist():
            v = found[i]
            found[i] = "NaN" if v != v else "Infinity" if v > 0 else "-Infinity"
    return found

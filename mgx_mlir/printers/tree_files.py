"""Trees of values written to files: MIGraphX's msgpack and JSON.

A tree is made of None, bool, int, float, str, lists, dicts (in writing order) and Binary.
"""

from __future__ import annotations

import functools
import json
import math
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.names import quoted_unicode

FILE_VERSION = 8
MIGRAPHX_VERSION = "2.16.0"
OWN_KEY = "mgx_mlir"
OWN_VERSION = 1
MAX_BIN = 2**32 - 2  # bytes of one msgpack BIN; longer data is an array of several
ALIGNMENT = 64  # alignment of Aligned bytes in a file, so that the runtime uses them in place
Tree = Any


class Binary:
    """Raw bytes in a tree: those of an array, not copied."""

    def __init__(self, data: Any) -> None:
        if isinstance(data, np.ndarray):
            flat = np.ascontiguousarray(data).reshape(-1)
            data = flat.view(np.uint8).data if flat.size else memoryview(b"")
        self.data = memoryview(data)

    def __len__(self) -> int:
        return self.data.nbytes


class Aligned(Binary):
    """Raw bytes that are mapped in place: msgpack aligns them to 64 bytes.

    Only for entries that MIGraphX does not read, because the tree has {"pad", "data"} instead.
    """


# ---- msgpack -----------------------------------------------------------------------------------


def write_msgpack(tree: Tree, write: Callable[[Any], Any]) -> None:
    """Encode a tree: an empty dict as an empty array, Binary as an array of BIN chunks.

    Large binaries are handed to `write` as they are.
    """
    import msgpack  # only this format needs it

    packer = msgpack.Packer(use_bin_type=True)
    pending = bytearray()
    written = 0

    def put(data: Any) -> None:
        nonlocal written
        written += len(data)
        write(data)

    def flush() -> None:
        if pending:
            put(bytes(pending))
            pending.clear()

    def aligned(value: Aligned) -> None:
        pending.extend(packer.pack_map_header(2) + packer.pack("pad"))
        # a header of 2 bytes, the padding, the key, and a header of 5 bytes
        head = packer.pack("data")
        at = written + len(pending) + 2 + len(head) + 5
        pad = bytes(-at % ALIGNMENT)
        pending.extend(struct.pack(">BB", 0xC4, len(pad)) + pad + head)
        pending.extend(struct.pack(">BI", 0xC6, len(value)))
        flush()
        put(value.data)

    def encode(value: Tree) -> None:
        if isinstance(value, Mapping):
            if not value:
                pending.extend(packer.pack_array_header(0))
                return
            pending.extend(packer.pack_map_header(len(value)))
            for k, v in value.items():
                pending.extend(packer.pack(str(k)))
                encode(v)
        elif isinstance(value, list | tuple):
            pending.extend(packer.pack_array_header(len(value)))
            for v in value:
                encode(v)
        elif isinstance(value, Aligned) and len(value) <= MAX_BIN:
            aligned(value)
        elif isinstance(value, Aligned):
            encode({"data": Binary(value.data)})
        elif isinstance(value, Binary):
            data = value.data
            chunks = [data[i : i + MAX_BIN] for i in range(0, len(value), MAX_BIN)] or [data]
            pending.extend(packer.pack_array_header(len(chunks)))
            for chunk in chunks:
                pending.extend(_bin_header(chunk.nbytes))
                if chunk.nbytes < 4096:
                    pending.extend(chunk)
                else:
                    flush()
                    put(chunk)
        else:
            pending.extend(packer.pack(value))

    try:
        encode(tree)
    except OverflowError:
        raise FileError("the program has an extent or a stride beyond 64 bits") from None
    flush()


def _bin_header(size: int) -> bytes:
    if size < 2**8:
        return struct.pack(">BB", 0xC4, size)
    if size < 2**16:
        return struct.pack(">BH", 0xC5, size)
    return struct.pack(">BI", 0xC6, size)


def msgpack_bytes(tree: Tree) -> bytes:
    """Encode a tree as msgpack."""
    parts: list[Any] = []
    write_msgpack(tree, parts.append)
    return b"".join(parts)


# ---- JSON --------------------------------------------------------------------------------------


def write_json(tree: Tree, write: Callable[[str], Any]) -> None:
    """Encode a tree on one line, keys sorted; bytes as {"bytes": [...]}, inf as "inf"."""
    if isinstance(tree, Mapping):
        write("{")
        for i, key in enumerate(sorted(tree)):
            write(("," if i else "") + json_string(key) + ":")
            write_json(tree[key], write)
        write("}")
    elif isinstance(tree, list | tuple):
        write("[")
        for i, value in enumerate(tree):
            if i:
                write(",")
            write_json(value, write)
        write("]")
    elif isinstance(tree, Aligned):
        write_json({"data": Binary(tree.data)}, write)
    elif isinstance(tree, Binary):
        write('{"bytes":[')
        for start in range(0, len(tree), 1 << 20):
            part = np.frombuffer(tree.data[start : start + (1 << 20)], np.uint8)
            write(("," if start else "") + decimal_text(part))
        write("]}")
    elif isinstance(tree, float):
        write(json_number(tree))
    elif isinstance(tree, str):
        write(json_string(tree))
    else:
        write(json.dumps(tree))


def json_string(text: str) -> str:
    """Quote a string; control characters are escaped."""
    return quoted_unicode(json.dumps(text, ensure_ascii=False))


def decimal_text(data: np.ndarray) -> str:
    """Write bytes as decimal numbers joined by commas; a table makes it 50 times as fast."""
    digits, used = _decimals()
    return digits[data][used[data]].tobytes()[:-1].decode()


@functools.cache
def _decimals() -> tuple[np.ndarray, np.ndarray]:
    """Return the characters of each byte's number with its comma, and the mask of used ones."""
    texts = [f"{i}," for i in range(256)]
    digits = np.array([list(t.ljust(4).encode()) for t in texts], np.uint8)
    return digits, np.array([[k < len(t) for k in range(4)] for t in texts])


def json_number(value: float) -> str:
    """Write a float in the fewest digits, in the form of MIGraphX's JSON library."""
    if not math.isfinite(value):
        # MIGraphX writes null, which it reads as 0; it refuses a string
        return f'"{value}"'
    text = repr(value)
    if 1e15 <= abs(value) < 1e16:  # range in which the two forms differ
        digits = f"{value:.0f}".lstrip("-").rstrip("0")
        sign = "-" if value < 0 else ""
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{rest}e+15"
    return text


def json_text(tree: Tree) -> str:
    """Encode a tree as JSON."""
    parts: list[str] = []
    write_json(tree, parts.append)
    return "".join(parts)


# ---- files ---------------------------------------------------------------------------------------


def save_tree(tree: Tree, path: str | os.PathLike[str], format: str) -> None:
    """Write a tree to a file, through a temporary one. FileError where that fails."""
    name = os.fspath(path)
    if format not in ("msgpack", "json"):
        raise FileError(f"unknown format '{format}', expected msgpack or json", location=name)
    try:
        with atomic(name) as f:
            if format == "json":
                write_json(tree, lambda s: f.write(s.encode()))
            else:
                write_msgpack(tree, f.write)
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise FileError(f"cannot write the file: {reason}", location=name) from None

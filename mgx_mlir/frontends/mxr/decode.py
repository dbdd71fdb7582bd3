"""The two encodings of MIGraphX's value tree, read from untrusted bytes.

Binary data is not copied: the tree has views of the given bytes.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
import struct
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.frontends.mxr.checks import shortened

MAX_DEPTH = 200
MAX_VALUES = 1 << 23  # values of one file: a program of 50,000 instructions has 3 million
MAX_NESTED = 1 << 21  # arrays and objects of a JSON file, which take 250 bytes each
Tree = Any

_FIXED = {
    0xCA: ">f", 0xCB: ">d",
    0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_SIZED = {
    0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
    0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
    0xDC: ("array", ">H"), 0xDD: ("array", ">I"),
    0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip


class _Reader:
    """Msgpack reader that checks every length against the remaining bytes."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at, self.end = data, 0, len(data)
        self.values = 0

    def fail(self, message: str) -> FileError:
        """Return the error for the reader's current offset."""
        return FileError(f"{message} at byte {self.at}")

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes; FileError where the data ends before."""
        if count > self.end - self.at:
            raise self.fail(f"the data ends early: expected {count} bytes more")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str) -> Any:
        """Read one number of a struct format."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, depth: int = 0) -> Tree:
        """Return the value at the reader's offset. The most frequent kinds are tested first."""
        at = self.at
        if at == self.end:
            raise self.fail("the data ends early: expected 1 bytes more")
        self.values += 1
        tag = self.data[at]
        self.at = at + 1
        if tag < 0x80:
            return tag
        if 0xA0 <= tag < 0xC0:
            return self.text(tag & 0x1F)
        if tag < 0x90:
            return self.map(tag & 0x0F, depth)
        if tag < 0xA0:
            return self.array(tag & 0x0F, depth)
        if tag >= 0xE0:
            return tag - 0x100
        if tag == 0xC0:
            return None
        if tag in (0xC2, 0xC3):
            return tag == 0xC3
        if tag in _FIXED:
            return self.number(_FIXED[tag])
        if tag not in _SIZED:
            self.at -= 1
            raise self.fail(f"expected a msgpack value, got tag 0x{tag:02x}")
        kind, form = _SIZED[tag]
        size = self.number(form)
        if kind == "bin":
            return self.take(size)
        if kind == "str":
            return self.text(size)
        return self.array(size, depth) if kind == "array" else self.map(size, depth)

    def text(self, size: int) -> str:
        """Read a string of `size` bytes; FileError where it is not UTF-8."""
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise self.fail("a string is not UTF-8") from None

    def entered(self, depth: int) -> int:
        """Return the depth inside of an array or map at `depth`; FileError beyond the limits."""
        if depth == MAX_DEPTH:
            raise self.fail(f"values nest deeper than {MAX_DEPTH}")
        if self.values > MAX_VALUES:
            raise self.fail(f"there are more than {MAX_VALUES} values")
        return depth + 1

    def array(self, size: int, depth: int) -> Tree:
        """Read an array of `size` entries at `depth`."""
        if not size:
            return []
        if size > self.end - self.at:  # each element takes a byte at least
            raise self.fail(f"an array of {size} elements exceeds the remaining bytes")
        if size > MAX_VALUES:
            raise self.fail(f"there are more than {MAX_VALUES} values")
        depth = self.entered(depth)
        found = [self.value(depth) for _ in range(size)]
        return self.joined(found) if isinstance(found[0], memoryview) else found

    def joined(self, chunks: list[Any]) -> memoryview:
        """Join the chunks of one binary."""
        if not all(isinstance(c, memoryview) for c in chunks):
            raise self.fail("a chunk of binary data is no binary")
        return chunks[0] if len(chunks) == 1 else memoryview(b"".join(chunks))

    def map(self, size: int, depth: int) -> dict[str, Tree]:
        """Read a map of `size` entries at `depth`; FileError if the data cannot hold it."""
        if 2 * size > self.end - self.at:
            raise self.fail(f"a map of {size} entries exceeds the remaining bytes")
        depth = self.entered(depth)
        found: dict[str, Tree] = {}
        for _ in range(size):
            key = self.value(depth)
            if not isinstance(key, str):
                raise self.fail("expected a string as key")
            if key in found:
                raise self.fail(f"key {shortened(key)} occurs twice")
            found[key] = self.value(depth)
        return found


def decode_msgpack(data: bytes | memoryview) -> Tree:
    """Return the tree of msgpack data: binaries are memoryviews of it. Raises FileError."""
    reader = _Reader(memoryview(data).cast("B"))
    if not reader.end:
        raise FileError("the data is empty")
    found = reader.value()
    if reader.at != reader.end:
        raise reader.fail(f"{reader.end - reader.at} bytes follow the value")
    return found


def decode_json(data: bytes | memoryview) -> Tree:
    """Return the tree of JSON data: {"bytes": [...]} is read as binary. Raises FileError."""
    raw = bytes(data)
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTED:
        raise FileError(f"there are more than {MAX_NESTED} arrays and objects")
    blobs: dict[str, memoryview] = {}
    mark = secrets.token_hex(8)  # random mark, so that no file can refer to another value's data

    def kept(found: re.Match[bytes]) -> bytes:
        name = f"{mark}:{len(blobs)}"
        blobs[name] = decimal_bytes(np.frombuffer(found[1], np.uint8)).data
        return b'{"bytes":"%s"}' % name.encode()

    raw = _LONG.sub(kept, raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise FileError("the data is not UTF-8, so it is no JSON") from None
    try:
        hook = functools.partial(_object, blobs)
        found = json.loads(text, object_pairs_hook=hook, parse_constant=_constant)
    except RecursionError:
        raise FileError("values nest too deep") from None
    except ValueError as e:
        raise FileError(f"the data is no JSON: {str(e).lower()}") from None
    if _SURROGATE.search(raw):
        _check_strings(found)
    return found


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _check_strings(tree: Tree) -> None:
    """Raise FileError for half of a surrogate pair, which JSON can spell but which is no text."""
    stack = [tree]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise FileError("a string is not UTF-8") from None
        elif isinstance(value, dict):
            stack += [*value, *value.values()]
        elif isinstance(value, list):
            stack += value


# long data in the form of common writers: numpy parses it a hundred times as fast
_LONG = re.compile(rb'\{"bytes":\[([0-9,]{256,})\]\}')


def decimal_bytes(text: np.ndarray) -> np.ndarray:
    """Return the bytes of decimal numbers separated by commas. FileError for a number that is no
    byte.
    """
    ends = np.append(np.flatnonzero(text == ord(",")), text.size)
    sizes = np.diff(ends, prepend=-1) - 1
    if sizes.min() < 1 or sizes.max() > 3:
        raise FileError("'bytes' expected numbers from 0 to 255")
    digits = text.astype(np.int16) - ord("0")
    found = digits[ends - 1].copy()
    for place, factor in ((2, 10), (3, 100)):
        longer = sizes >= place
        found[longer] += factor * digits[ends[longer] - place]
    if found.max() > 255:
        raise FileError("'bytes' expected numbers from 0 to 255")
    return found.astype(np.uint8)


def _object(blobs: dict[str, memoryview], pairs: list[tuple[str, Tree]]) -> Tree:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FileError("a key of an object occurs twice")
    if list(found) == ["bytes"] and isinstance(found["bytes"], str) and found["bytes"] in blobs:
        return blobs[found["bytes"]]
    if list(found) == ["bytes"] and isinstance(found["bytes"], list):
        try:
            return memoryview(bytes(found["bytes"]))
        except (ValueError, TypeError):
            raise FileError("'bytes' expected numbers from 0 to 255") from None
    return found


def _constant(name: str) -> Tree:
    raise FileError(f"{name} is no JSON number")


def looks_like_json(data: memoryview) -> bool:
    """Return whether the data begins as a JSON object does."""
    return bytes(data[:64]).lstrip()[:1] == b"{"

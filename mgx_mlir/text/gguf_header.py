"""Headers of .gguf files, checked against the file's size before anything is allocated."""

# gguf and transformers are extras, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_VERSIONS = (2, 3)
_ALIGNMENT = 32  # default in bytes
_MOST_DIMS = 4  # GGML_MAX_DIMS
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
# elements and bytes of a block by gguf's number of a type. The package gguf has the same table,
# and takes 28 ms to load: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
SIZES = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 40), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
    40: (64, 36), 41: (128, 18),
}  # fmt: skip
_LENGTH = struct.Struct("<Q")  # bytes of a string
_LEAST_PAIR = 8 + 4 + 1  # least bytes of a key and its value: a length, a type, a byte
_LEAST_TENSOR = 8 + 4 + 4 + 8  # least bytes of a tensor's entry: a length, rank, type, offset


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: row-major dims, gguf's number of its type, its byte range."""

    name: str
    dims: tuple[int, ...]
    kind: int
    start: int
    size: int
    path: str


@dataclass(frozen=True)
class Array:
    """An array of the file that was checked and passed: gguf's number of its elements' type."""

    kind: int
    count: int
    start: int


@dataclass(frozen=True)
class Header:
    """Scalars, strings and arrays by key, tensors by name, SHA-256 of all that."""

    path: str
    values: dict[str, Any]
    tensors: dict[str, Entry]
    digest: str

    def elements(self, key: str) -> list[Any]:
        """Return the elements of an array: strings or numbers; none where the key is missing.

        Raises FileError for a value that is no array.
        """
        found = self.values.get(key)
        if found is None:
            return []
        if not isinstance(found, Array):
            raise FileError(f"'{key}' expected an array, got {found!r:.80}", location=self.path)
        walk = _Walk(self.path)
        walk.at = found.start
        if found.kind == _STRING:
            return [walk.text(f"a string of '{key}'") for _ in range(found.count)]
        form = f"<{found.count}{_SCALARS[found.kind]}"
        return list(struct.unpack(form, walk.take(struct.calcsize(form), f"'{key}'")))


class _Walk:
    """A read position in the bytes of a file; reads past the end raise."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bytes = memoryview(np.memmap(path, mode="r", dtype=np.uint8).data)
        self.at = 0

    def wrong(self, why: str) -> FileError:
        return FileError(f"the .gguf file is damaged: {why}", location=self.path)

    def take(self, count: int, what: str) -> memoryview:
        rest = len(self.bytes) - self.at
        if count > rest:
            raise self.wrong(f"{what} expected {count} bytes at {self.at}, {rest} are left")
        self.at += count
        return self.bytes[self.at - count : self.at]

    def number(self, form: str, what: str) -> Any:
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}"), what))[0]

    def count(self, what: str, least: int, form: str = "Q") -> int:
        """Read a count of items of at least `least` bytes each; check that they fit."""
        found = self.number(form, f"the number of {what}")
        if found * least > len(self.bytes) - self.at:
            raise self.wrong(f"{found} {what} do not fit into its {len(self.bytes)} bytes")
        return found

    def text(self, what: str) -> str:
        data = self.take(self.number("Q", f"the length of {what}"), what)
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise self.wrong(f"{what} is no UTF-8") from None

    def value(self, key: str) -> Any:
        """Read a value: a scalar or a string; pass an array and return where it lies."""
        kind = self.number("I", f"the type of '{key}'")
        if kind in _SCALARS:
            return self.number(_SCALARS[kind], f"'{key}'")
        if kind == _STRING:
            return self.text(f"'{key}'")
        if kind != _ARRAY:
            raise self.wrong(f"'{key}' has a value of the unknown type {kind}")
        kind = self.number("I", f"the type of '{key}'")
        if kind in _SCALARS:
            size = struct.calcsize(f"<{_SCALARS[kind]}")
            count = self.count(f"elements of '{key}'", size)
            found = Array(kind, count, self.at)
            self.take(count * size, f"'{key}'")
            return found
        if kind != _STRING:
            raise self.wrong(f"'{key}' has elements of the type {kind}")
        count = self.count(f"elements of '{key}'", 8)
        found = Array(kind, count, self.at)
        self.pass_texts(count, f"a string of '{key}'")
        return found

    def pass_texts(self, count: int, what: str) -> None:
        """Check `count` strings, of which a vocabulary has 100,000, in one loop without calls."""
        data, at, end = self.bytes, self.at, len(self.bytes)
        for _ in range(count):
            begin = at + _LENGTH.size
            size = _LENGTH.unpack_from(data, at)[0] if begin <= end else end
            try:
                if begin + size > end:
                    raise ValueError
                str(data[begin : begin + size], "utf-8")
            except ValueError:  # UnicodeDecodeError is one
                self.at = at
                self.text(what)  # raises what is wrong
            at = begin + size
        self.at = at


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read and check the header of a .gguf file: versions 2 and 3, little-endian.

    Errors: FileError for another kind of file, or a wrong count, type or offset.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise FileError("expected a .gguf file, found no file", location=name)
    if os.path.getsize(name) < 24:  # an empty file cannot be mapped
        raise FileError("expected a .gguf file, got fewer than 24 bytes", location=name)
    walk = _Walk(name)
    if bytes(walk.take(4, "the magic")) != b"GGUF":
        raise FileError("expected a .gguf file, which begins with GGUF", location=name)
    version = walk.number("I", "the version")
    if version not in _VERSIONS:
        big = version & 0xFFFF == 0
        got = "big-endian numbers" if big else f"version {version}"
        raise FileError(f"expected .gguf of version 2 or 3, little-endian, got {got}",
                        location=name)  # fmt: skip
    tensors = walk.count("tensors", _LEAST_TENSOR)
    pairs = walk.count("values", _LEAST_PAIR)
    values: dict[str, Any] = {}
    for _ in range(pairs):
        key = walk.text("a key")
        if key in values:
            raise walk.wrong(f"the key '{key}' comes twice")
        values[key] = walk.value(key)
    found = _tensors(walk, tensors, values)
    return Header(name, values, found, hashlib.sha256(walk.bytes[: walk.at]).hexdigest())


def _tensors(walk: _Walk, count: int, values: dict[str, Any]) -> dict[str, Entry]:
    rows = []
    for _ in range(count):
        name = walk.text("a tensor's name")
        rank = walk.number("I", f"the rank of '{name}'")
        if not 1 <= rank <= _MOST_DIMS:
            raise walk.wrong(f"'{name}' has rank {rank}, expected 1 to {_MOST_DIMS}")
        dims = tuple(walk.number("Q", f"a dim of '{name}'") for _ in range(rank))[::-1]
        rows.append((name, dims, walk.number("I", f"the type of '{name}'"),
                     walk.number("Q", f"the offset of '{name}'")))  # fmt: skip
    align = values.get("general.alignment", _ALIGNMENT)
    if not isinstance(align, int) or align < 1 or align & (align - 1):
        raise walk.wrong(f"general.alignment expected a power of 2, got {align}")
    data = -(-walk.at // align) * align
    found: dict[str, Entry] = {}
    for name, dims, kind, offset in rows:
        if name in found:
            raise walk.wrong(f"the tensor '{name}' comes twice")
        size = _size(walk, name, dims, kind)
        if data + offset + size > len(walk.bytes):
            raise walk.wrong(
                f"'{name}' ends at byte {data + offset + size} of a file of {len(walk.bytes)}"
            )
        found[name] = Entry(name, dims, kind, data + offset, size, walk.path)
    return found


def _size(walk: _Walk, name: str, dims: tuple[int, ...], kind: int) -> int:
    """Return the bytes of a tensor."""
    if kind not in SIZES:
        raise walk.wrong(f"'{name}' is of the unknown type {kind}")
    block, size = SIZES[kind]
    if dims[-1] % block:
        raise walk.wrong(f"'{name}' has rows of {dims[-1]}, expected a multiple of {block}")
    return prod(dims) // block * size

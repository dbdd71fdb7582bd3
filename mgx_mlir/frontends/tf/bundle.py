"""Reader of TensorFlow checkpoints: an index file, which is a table, and files of tensor bytes."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from google.protobuf.message import DecodeError, Message

from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.frontends.files import bytes_of, check_size, open_regular
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.dtypes import STRING, tensor_dtype
from mgx_mlir.frontends.tf.tensors import as_array, static_shape

_FOOTER, _TRAILER = 48, 5  # bytes of the file's footer, and of each block's trailer
_MAGIC = 0xDB4775248B80FB57
MAX_INDEX = 1 << 28


def checksum(data: bytes | np.ndarray) -> int:
    """Return the CRC-32C of data as tables store it: masked, because data may contain checksums."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class Bundle:
    """Tensors of a checkpoint by key. The bytes of a tensor are read on request."""

    def __init__(self, prefix: Path) -> None:
        """Read the index: `prefix` is its path without `.index`.

        Raises FileError where it is missing or damaged.
        """
        self._prefix = prefix
        self._name = f"{prefix}.index"
        self._entries = _Table(self._name).entries()
        header = schema.BundleHeader()
        self._parse(self._entries.pop(b"", b""), header)
        if header.endianness != 0:
            raise FileError("the checkpoint is big-endian", location=self._name)
        self._shards = header.num_shards
        self._open: dict[int, int] = {}

    def __contains__(self, key: str) -> bool:
        return key.encode() in self._entries

    def keys(self) -> list[str]:
        """Return the names of the checkpoint's tensors."""
        return [k.decode(errors="replace") for k in self._entries]

    def close(self) -> None:
        """Close the checkpoint's files."""
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def _parse(self, data: bytes, message: Message) -> None:
        try:
            message.ParseFromString(data)
        except DecodeError:
            raise FileError("the index of the checkpoint is damaged", location=self._name) from None

    def read(self, key: str, what: str) -> np.ndarray:
        """Return the tensor of a key. Raises ModelError or FileError, naming `what`."""
        entry = self._entry(key.encode())
        if not entry.slices:
            return self._tensor(entry, what)
        dims = static_shape(entry.shape, what)
        parts = [self._part(key, part, dims, what) for part in entry.slices]
        if sum(found.size for _, found in parts) != math.prod(dims):
            raise ModelError(
                f"{what} of {list(dims)} has slices that do not add up to its elements"
            )
        out, filled = np.empty(dims, parts[0][1].dtype), np.zeros(dims, bool)
        for where, found in parts:
            out[where], filled[where] = found, True
        if not filled.all():
            raise ModelError(f"{what} has slices that overlap")
        return out

    def read_text(self, key: str, what: str) -> bytes:
        """Return the one string of a key. Raises ModelError or FileError, naming `what`."""
        entry = self._entry(key.encode())
        if entry.dtype != STRING or entry.shape.dim or not 0 < entry.size <= MAX_INDEX:
            raise ModelError(f"{what} expected one text")
        data = self._bytes(entry, entry.size, what).tobytes()
        length, at = 0, 0
        while at < min(len(data), 10):  # a varint, then its checksum
            length |= (data[at] & 0x7F) << 7 * at
            at += 1
            if data[at - 1] < 0x80:
                break
        text = data[at + 4 :]
        if length != len(text):
            raise FileError(f"{what} is damaged", location=self._path(entry.shard_id))
        return text

    def _entry(self, key: bytes) -> Any:
        entry = schema.BundleEntry()
        self._parse(self._entries[key], entry)
        return entry

    def _tensor(self, entry: Any, what: str) -> np.ndarray:
        dtype = tensor_dtype(entry.dtype, what)
        dims = static_shape(entry.shape, what)
        nbytes = math.prod(dims) * dtype.size
        check_size(entry.size, nbytes, dims, what)
        raw = self._bytes(entry, nbytes, what)
        if entry.crc32c and entry.crc32c != checksum(raw):
            raise FileError(
                f"{what} is damaged: its checksum does not fit", location=self._path(entry.shard_id)
            )
        return as_array(raw, dtype, dims)

    def _part(
        self, key: str, part: Any, dims: tuple[int, ...], what: str
    ) -> tuple[tuple[slice, ...], np.ndarray]:
        """Return the position of a slice in its tensor, and its values, which have a separate
        key.
        """
        extents = [(e.start, e.length or -1) for e in part.extent]
        own = _key_of_slice(key.encode(), extents)
        if own not in self._entries or len(extents) != len(dims):
            raise ModelError(f"{what} has a slice that the checkpoint does not hold")
        found = self._tensor(self._entry(own), what)
        bounds = [(a, size if n < 0 else n) for (a, n), size in zip(extents, dims, strict=True)]
        beyond = any(a < 0 or a + n > d for (a, n), d in zip(bounds, dims, strict=True))
        if beyond or found.shape != tuple(n for _, n in bounds):
            raise ModelError(f"{what} of {list(dims)} has a slice that does not fit")
        return tuple(slice(a, a + n) for a, n in bounds), found

    def _bytes(self, entry: Any, nbytes: int, what: str) -> np.ndarray:
        """Return the bytes of an entry."""
        if not 0 <= entry.shard_id < self._shards:
            raise FileError(f"{what} is in shard {entry.shard_id} of {self._shards}",
                            location=self._name)  # fmt: skip
        fd = self._shard(entry.shard_id)
        size = os.fstat(fd).st_size
        if entry.offset < 0 or entry.offset + nbytes > size:
            raise FileError(
                f"{what} expected {nbytes} bytes at offset {entry.offset} of a file of {size}",
                location=self._path(entry.shard_id),
            )
        return bytes_of(fd, entry.offset, nbytes, what, self._path(entry.shard_id))

    def _path(self, shard: int) -> str:
        return f"{self._prefix}.data-{shard:05d}-of-{self._shards:05d}"

    def _shard(self, shard: int) -> int:
        if shard not in self._open:
            self._open[shard] = open_regular(self._path(shard), "a checkpoint's data")
        return self._open[shard]


def _key_of_slice(key: bytes, extents: list[tuple[int, int]]) -> bytes:
    """Return the key of a slice of a tensor: strings and numbers encoded so that bytes sort
    correctly.

    A length of -1 is the whole extent.
    """
    text = key.replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff") + b"\0\1"
    numbers = (_signed(n) for extent in extents for n in extent)
    return b"\0" + text + bytes([1, len(extents)]) + b"".join(numbers)


def _signed(number: int) -> bytes:
    """Encode a number of -64 or more: a leading one per byte, a sign, the digits."""
    if number < 64:
        return bytes([(number & 0xFF) ^ 0x80])
    size = next(n for n in range(2, 11) if number < 1 << 7 * n - 1)
    lead = ((1 << size) - 1) << (8 * size - size)
    return (number | lead).to_bytes(size, "big")


class _Table:
    """A sorted table of keys and values in blocks, in LevelDB's form."""

    def __init__(self, name: str) -> None:
        self._name = name
        with open(open_regular(name, "a checkpoint's index"), "rb") as f:
            self._data = f.read(MAX_INDEX + 1)
        if len(self._data) > MAX_INDEX:
            raise self._damaged(f"is over {MAX_INDEX >> 20} MiB")

    def _damaged(self, why: str) -> FileError:
        return FileError(f"not a checkpoint's index: the file {why}", location=self._name)

    def entries(self) -> dict[bytes, bytes]:
        """Return the entries of the table by key; FileError where it is damaged."""
        data = self._data
        if len(data) < _FOOTER or struct.unpack_from("<Q", data, len(data) - 8)[0] != _MAGIC:
            raise self._damaged("does not end as one")
        at = len(data) - _FOOTER
        for _ in range(2):
            _, at = self._number(data, at)  # handle of the index block
        offset, at = self._number(data, at)
        size, _ = self._number(data, at)
        found: dict[bytes, bytes] = {}
        for _, handle in self._block(offset, size):
            start, after = self._number(handle, 0)
            length, _ = self._number(handle, after)
            found.update(self._block(start, length))
        return found

    def _block(self, offset: int, size: int) -> list[tuple[bytes, bytes]]:
        end = offset + size
        if size < 4 or end + _TRAILER > len(self._data):
            raise self._damaged(f"is cut short: a block of {size} bytes at offset {offset}")
        kind = self._data[end]
        if kind != 0:
            raise self._damaged(f"has a compressed block of kind {kind}, which is not supported")
        stated = struct.unpack_from("<I", self._data, end + 1)[0]
        if stated != checksum(self._data[offset : end + 1]):
            raise self._damaged(f"is damaged: the checksum at offset {end + 1} does not fit")
        block = self._data[offset:end]
        limit = size - 4 - 4 * struct.unpack_from("<I", block, size - 4)[0]
        out, key, at = [], b"", 0
        while at < limit:
            shared, at = self._number(block, at)
            own, at = self._number(block, at)
            length, at = self._number(block, at)
            if shared > len(key) or at + own + length > limit:
                raise self._damaged(f"is damaged: an entry at offset {offset + at}")
            key = key[:shared] + block[at : at + own]
            out.append((key, block[at + own : at + own + length]))
            at += own + length
        return out

    def _number(self, data: bytes, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if at >= len(data):
                break
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
        raise self._damaged("has no valid number where one is expected")

"""One file of named blobs with a JSON header: aligned, so that it can be mapped and used as is.

Layout: magic, header length, crc of what follows, signature of the header, header (JSON), padding,
blobs. The first blob starts on a page, every other on 64 bytes, which is what zero-copy parameters
need. Each blob has a SHA-256 in the header, checked by `Container.verify`.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.targets.private import Signer, make_private, open_own

MAGIC = b"MGXBLOB2"
_HEAD = struct.Struct("<8sQI32s")
_ALIGN = 64
_PAGE = 4096
_MAX_HEADER = 1 << 28
_MAP_FROM = 4 << 20
_PART = 8 << 20  # bytes


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def _bytes_of(value: bytes | np.ndarray) -> memoryview:
    if isinstance(value, np.ndarray):
        flat = np.ascontiguousarray(value).reshape(-1)
        return flat.view(np.uint8).data if flat.nbytes else memoryview(b"")
    return memoryview(value)


def _parts(view: memoryview) -> Iterator[memoryview]:
    """Split bytes into parts that take some milliseconds each to hash or write."""
    for at in range(0, view.nbytes, _PART):
        yield view[at : at + _PART]


def blob_sum(value: bytes | np.ndarray, check: Callable[[], None] = lambda: None) -> str:
    """Return the SHA-256 of a blob; `check` is called each few milliseconds, and may raise."""
    found = hashlib.sha256()
    for part in _parts(_bytes_of(value)):
        found.update(part)
        check()
    return found.hexdigest()


def write_container(
    path: Path,
    blobs: Mapping[str, bytes | np.ndarray],
    meta: Mapping[str, Any] | None = None,
    *,
    sync: bool = False,
    signer: Signer | None = None,
    sums: Mapping[str, str] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write the file under a temporary name and rename it into place, for this user alone.

    sync: force the data to the disk before the rename, for files whose blobs are not checked
    on every load. signer: signs the header. sums: SHA-256 of the blobs where it is known. check:
    called each few milliseconds; what it raises ends the writing, and no file is left.
    """
    rows, offset = [], 0
    views = [(name, value, _bytes_of(value)) for name, value in blobs.items()]
    for name, value, view in views:
        row: dict[str, Any] = {
            "name": name,
            "offset": offset,
            "size": view.nbytes,
            "sha256": sums[name] if sums is not None else blob_sum(value, check),
        }
        if isinstance(value, np.ndarray):
            row["dtype"] = dtypes.from_numpy(value.dtype).name
            row["dims"] = list(value.shape)
        rows.append(row)
        offset = _up(offset + view.nbytes, _ALIGN)
    label = signer.label if signer else ""
    header = json.dumps({"label": label, "blobs": rows, "meta": dict(meta or {})}).encode()
    signature = signer.sign(header) if signer else bytes(32)
    start = _up(_HEAD.size + len(header), _PAGE)
    make_private(path.parent)
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as f:
            crc = zlib.crc32(signature + header)
            f.write(_HEAD.pack(MAGIC, len(header), crc, signature) + header)
            for row, (_, _, view) in zip(rows, views, strict=True):
                f.seek(start + row["offset"])
                for part in _parts(view):
                    f.write(part)
                    check()
            f.truncate(start + offset)
            f.flush()
            if sync:
                os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read(f: BinaryIO, size: int) -> np.ndarray:
    """Return the file's bytes, read only.

    Small files are copied: a mapping would hold a descriptor.
    """
    if size >= _MAP_FROM:
        return np.frombuffer(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    data = aligned_empty((size,), np.dtype(np.uint8))
    got = f.readinto(data.data)  # type: ignore[attr-defined]
    data.flags.writeable = False
    return data[:got]


def _is_roots(status: os.stat_result) -> bool:
    """Return whether root wrote a file for all: root's key is for root alone."""
    return os.name == "posix" and status.st_uid == 0 != os.geteuid()


class Container:
    """An opened container; blobs are views of the file's bytes and keep them alive.

    signer: unless root owns the file, the header must be signed by it and have its label. Then the
    file must be a regular one that only this user and root can have written.
    Errors: FileError when the file is missing, cut short, of another kind, damaged or another's.
    """

    def __init__(self, path: Path, signer: Signer | None = None) -> None:
        self.path = path
        try:
            with open(path, "rb") if signer is None else os.fdopen(open_own(path), "rb") as f:
                status = os.fstat(f.fileno())
                size = status.st_size
                if size < _HEAD.size:
                    raise FileError(
                        f"too short to be a blob file: {size} bytes", location=str(path)
                    )
                self._bytes = _read(f, size)
        except OSError as e:
            raise FileError(f"cannot read: {e.strerror or e}", location=str(path)) from e
        size = self._bytes.nbytes
        magic, length, crc, signature = _HEAD.unpack(self._bytes[: _HEAD.size].tobytes())
        if magic != MAGIC:
            raise FileError(f"not a blob file: magic {magic!r}", location=str(path))
        if length > min(_MAX_HEADER, size - _HEAD.size):
            raise FileError("the header is truncated", location=str(path))
        header = self._bytes[_HEAD.size : _HEAD.size + length].tobytes()
        if zlib.crc32(signature + header) != crc:
            raise FileError("the header is damaged", location=str(path))
        if signer is not None and not (_is_roots(status) or signer.is_signed(header, signature)):
            raise FileError("the signature is not this user's", location=str(path))
        try:
            parsed = json.loads(header)
            rows = parsed["blobs"]
            if signer is not None and parsed["label"] != signer.label:
                raise ValueError("it is of another entry")
            self.meta: dict[str, Any] = parsed["meta"]
            self.label = str(parsed["label"])
            self._rows: dict[str, dict[str, Any]] = {str(r["name"]): r for r in rows}
            self._start = _up(_HEAD.size + length, _PAGE)
            numbers = [r[k] for r in rows for k in ("offset", "size")]
            if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers):
                raise ValueError("an extent is not a number, or is negative")
            ends = [self._start + r["offset"] + r["size"] for r in rows]
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise FileError(f"the header cannot be read: {e}", location=str(path)) from e
        if max(ends, default=0) > size:
            raise FileError("the file is truncated", location=str(path))

    @property
    def names(self) -> list[str]:
        """The names of all blobs."""
        return list(self._rows)

    def blob(self, name: str) -> np.ndarray:
        """Return the bytes of a blob, read only, 64-byte aligned, not copied."""
        row = self._rows.get(name)
        if row is None:
            raise FileError(f"there is no blob '{name}'", location=str(self.path))
        begin = self._start + row["offset"]
        return self._bytes[begin : begin + row["size"]]

    def array(self, name: str) -> np.ndarray:
        """Return a blob as the array it was written from, read only, not copied."""
        data, row = self.blob(name), self._rows[name]
        try:
            return data.view(dtypes.from_name(row["dtype"]).np).reshape(row["dims"])
        except (KeyError, ValueError, TypeError, OverflowError) as e:
            raise FileError(f"blob '{name}' is not an array: {e}", location=str(self.path)) from e
        except MgxError as e:
            raise FileError(f"blob '{name}': {e.message}", location=str(self.path)) from e

    def arrays(self) -> dict[str, np.ndarray]:
        """Return every array of the file."""
        return {n: self.array(n) for n, row in self._rows.items() if "dtype" in row}

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Compare the digests of the blobs. Errors: FileError naming the first that differs."""
        for name in self._rows if names is None else names:
            row, data = self._rows[name], self.blob(name).data
            if hashlib.sha256(data).hexdigest() != row.get("sha256"):
                raise FileError(f"blob '{name}' is damaged", location=str(self.path))

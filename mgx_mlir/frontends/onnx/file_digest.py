"""Digest of an ONNX file, and of each large tensor in it, from one reading.

The cache needs the file's digest, and the importer the digests of its tensors.
"""

from __future__ import annotations

import hashlib
import os

from mgx_mlir.core.files import Identity, identity, is_young
from mgx_mlir.frontends.wire import Source, WireSchema, strip

_FLOAT, _DOUBLE = 1, 11
LAYOUT = WireSchema(  # the field numbers of onnx.proto
    what="ONNX model",
    root="model",
    inside={
        "model": {7: "graph", 25: "function"},
        "graph": {1: "node", 5: "tensor"},
        "function": {7: "node"},
        "node": {5: "attribute"},
        "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    },
    dtype=2,
    raw=9,  # raw_data
    typed={4: _FLOAT, 10: _DOUBLE},  # float_data, double_data
    mark=12,  # doc_string
)
LEAST = 4 << 20  # least bytes of a file whose tensors get digests
_STEP = 4 << 20  # bytes read at a time

Place = tuple[int, int]  # offset and bytes of a tensor
# digests of the last file, which is usually imported next
_last: tuple[Identity, dict[Place, bytes]] | None = None


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return a digest of an ONNX file's bytes.

    Errors: OSError; FileError for a file that is no protobuf message.
    """
    global _last
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        before = os.fstat(fd)
        stripped = strip(Source.of_file(os.fspath(path), fd), LAYOUT)
        found = hashlib.sha256(stripped.data.replace(stripped.mark.encode(), b""))
        tensors: dict[Place, bytes] = {}
        buffer = memoryview(bytearray(_STEP))
        for x in stripped.extents:
            tensors[x.offset, x.length] = digest = _digest(fd, x.offset, x.length, buffer)
            found.update(b"%d %d %s" % (x.offset, x.length, digest))
        if identity(os.fstat(fd)) == identity(before) and not is_young(before):
            _last = identity(before), tensors
    finally:
        os.close(fd)
    return found.hexdigest()


def _digest(fd: int, offset: int, length: int, buffer: memoryview) -> bytes:
    """Return the digest of a part of a file. Errors: OSError."""
    found, end = hashlib.sha256(), offset + length
    while offset < end:
        n = os.preadv(fd, [buffer[: end - offset]], offset)
        if not n:
            raise OSError("the file became shorter while it was read")
        found.update(buffer[:n])
        offset += n
    return found.digest()


def tensor_digests(fd: int) -> dict[Place, bytes]:
    """Return the known digests of an open file's tensors."""
    now = _last
    return now[1] if now is not None and now[0] == identity(os.fstat(fd)) else {}


__all__ = ["LAYOUT", "LEAST", "file_digest", "tensor_digests"]

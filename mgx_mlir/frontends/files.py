"""Opens files that a user names, only regular ones, and reads tensors from them."""

from __future__ import annotations

import os
import stat

import numpy as np

from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.core.files import READ_FLAGS, note_read, read_at
from mgx_mlir.core.literals import aligned_empty


def open_regular(name: str, what: str = "an ONNX file") -> int:
    """Return a descriptor of the regular file `name`; FileError for anything else."""
    try:
        fd = os.open(name, READ_FLAGS)
    except FileNotFoundError:
        raise FileError("no such file", location=name) from None
    except PermissionError:
        raise FileError("no permission to read the file", location=name) from None
    except (OSError, ValueError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        raise FileError(f"cannot open the file: {reason.lower()}", location=name) from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise FileError(f"expected {what}, got {kind}", location=name)
    note_read(name, fd)
    return fd


def bytes_of(
    source: int | memoryview, offset: int, nbytes: int, what: str, file: str
) -> np.ndarray:
    """Return `nbytes` of a file or buffer as an aligned u8 array. FileError if it ends before."""
    out = aligned_empty((nbytes,), np.dtype(np.uint8))
    if not isinstance(source, int):
        out[:] = np.frombuffer(source[offset : offset + nbytes], np.uint8)
        return out
    at, view = 0, memoryview(out.data)
    while at < nbytes:
        part = view[at : at + (1 << 30)]
        got = _read_into(source, part, offset + at)
        if got <= 0:
            raise FileError(f"{what}: the file ends early", location=file)
        at += got
    return out


def _read_into(fd: int, part: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(fd, [part], offset)
    data = read_at(fd, len(part), offset)  # Windows
    part[: len(data)] = data
    return len(data)


def check_size(have: int, expected: int, dims: tuple[int, ...], what: str) -> None:
    """Raise ModelError if a tensor's bytes differ from what its dims and type need."""
    if have != expected:
        raise ModelError(f"{what} expected {expected} bytes for dims {list(dims)}, got {have}")

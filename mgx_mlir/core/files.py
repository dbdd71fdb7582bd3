"""Reading files that a user names, and writing files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from mgx_mlir.core.errors import FileError


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[Any]]:
    """A binary file that takes the place of `path` when the block ends without an error."""
    name = os.fspath(path)
    folder = os.path.dirname(name) or "."
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(name)}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as f:
            yield f
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_bytes(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a regular file. FileError for anything else."""
    name = os.fspath(path)
    try:
        # not blocking: opening a pipe that nobody writes to would wait forever
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as e:
        reason = (getattr(e, "strerror", None) or str(e)).lower()
        raise FileError(f"cannot open the file: {reason}", location=name) from None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise FileError("expected a regular file", location=name)
    with os.fdopen(fd, "rb", buffering=0) as f:
        data = np.empty(status.st_size, np.uint8)  # not touched until read into
        view, at = data.data, 0
        while at < len(view):
            try:
                got = f.readinto(view[at:])
            except OSError as e:
                reason = (e.strerror or str(e)).lower()
                raise FileError(f"cannot read the file: {reason}", location=name) from None
            if not got:
                raise FileError("the file became shorter while it was read", location=name)
            at += got
    return view

"""Opens files that a user names, and nothing but regular files."""

from __future__ import annotations

import os
import stat

from mgx_mlir.core.errors import FileError


def open_regular(name: str, what: str = "an ONNX file") -> int:
    """A descriptor of the regular file `name`; FileError for anything else."""
    try:
        # not blocking: opening a pipe that nobody writes to would wait forever
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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
    return fd

"""Files that only this user can have written: private folders, owners, and the key that signs
code.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path

from mgx_mlir.core.files import writer_of

KEY_BYTES = 32
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_FLAGS |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents with access for this user only. Errors: OSError."""
    missing = []
    at = folder
    while not at.exists() and at != at.parent:
        missing.append(at)
        at = at.parent
    for part in reversed(missing):
        with contextlib.suppress(FileExistsError):
            part.mkdir(mode=0o700)
    status = folder.stat()
    if os.name == "posix" and status.st_uid == os.geteuid() and status.st_mode & 0o077:
        folder.chmod(0o700)


def open_own(path: Path) -> int:
    """Open a regular file, not a link, that only this user or root can have written.

    Returns a descriptor. Errors: OSError; PermissionError that names the owner.
    """
    fd = os.open(path, _FLAGS)
    status = os.fstat(fd)
    why = writer_of(status) if stat.S_ISREG(status.st_mode) else "it is no regular file"
    if why:
        os.close(fd)
        raise PermissionError(errno.EPERM, why, str(path))
    return fd


def read_own(path: Path, most: int = 1 << 20) -> bytes:
    """Read the bytes of a small file that `open_own` opens. Errors: OSError."""
    with os.fdopen(open_own(path), "rb") as f:
        return f.read(most)


def write_own(path: Path, data: bytes) -> None:
    """Write a small file under a temporary name, for this user alone, and rename it. OSError."""
    make_private(path.parent)
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def signing_key(path: Path) -> bytes | None:
    """Return the secret in a file of this user, created if absent; None where that fails."""
    for _ in range(2):
        with contextlib.suppress(OSError):
            key = read_own(path)
            if len(key) == KEY_BYTES and _is_secret(path):
                return key
            path.unlink()  # truncated, or readable by others: entries that it signed become invalid
        with contextlib.suppress(OSError):
            _make_key(path)
    return None


def _is_secret(path: Path) -> bool:
    if os.name != "posix":
        return True
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _make_key(path: Path) -> None:
    """Write a new key, where no other process has done so meanwhile."""
    make_private(path.parent)
    fd, temporary = tempfile.mkstemp(prefix=".key.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(secrets.token_bytes(KEY_BYTES))
            f.flush()
            os.fsync(f.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


class Signer:
    """Signs and verifies data under a label with a secret key."""

    def __init__(self, key: bytes, label: str) -> None:
        self.key, self.label = key, label

    def sign(self, data: bytes) -> bytes:
        """Return HMAC-SHA256 of the label and the bytes."""
        head = self.label.encode()
        return hmac.digest(self.key, len(head).to_bytes(8, "little") + head + data, "sha256")

    def is_signed(self, data: bytes, signature: bytes) -> bool:
        """Return whether the signature is that of the bytes, in constant time."""
        return hmac.compare_digest(self.sign(data), signature)

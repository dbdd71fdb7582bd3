"""Reading of users' files with a record of what was read, and atomic writing."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import os
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.huge_pages import huge_empty

_MAP_FROM = 4 << 20  # bytes; smaller files are read, as a mapping keeps a descriptor
_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# non-blocking: opening a pipe without a writer would wait forever
READ_FLAGS = os.O_RDONLY | _CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_seeking = threading.Lock()  # for reads of Windows, which move a file's position


def read_at(fd: int, nbytes: int, offset: int) -> bytes:
    """Return up to `nbytes` bytes of an open file from an offset, in any thread."""
    if hasattr(os, "pread"):
        return os.pread(fd, nbytes, offset)
    with _seeking:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, nbytes)


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Generator[IO[Any]]:
    """Return a binary file that replaces `path` when the block ends without an error.

    Links are followed. A device, a pipe, or a descriptor (/dev/fd/3) cannot be replaced and is
    written to directly.
    """
    name = _behind_links(os.fspath(path))
    if _stays(name):
        number = _dynamic_number(name)  # a duplicate, which shares the position with other writers
        with open(name if number is None else os.dup(number), "wb") as f:
            yield f
        return
    handle, temporary = _beside(name)
    try:
        with os.fdopen(handle, "wb") as f:
            yield f
        os.replace(temporary, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _behind_links(name: str) -> str:
    """Return the target of links, which need not exist. A name such as /dev/stdout ends at its
    descriptor, since the system shows that as a link to the open file.
    """
    for _ in range(40):  # the limit of Linux
        if _dynamic_number(name) is not None or not os.path.islink(name):
            return name
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)


def _stays(name: str) -> bool:
    """Return whether a name is an open file, a device or a pipe."""
    if _dynamic_number(name) is not None:
        return True
    with contextlib.suppress(OSError):
        mode = os.stat(name).st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def _dynamic_number(name: str) -> int | None:
    """Return the descriptor of this process that a name in /dev/fd means."""
    folder, base = os.path.split(name)
    if not (base.isascii() and base.isdigit()):
        return None
    own = ("/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd")
    return int(base) if os.path.realpath(folder) in own else None


def written_in_place(path: str | os.PathLike[str]) -> bool:
    """Return whether `atomic` writes directly, and needs no rights in the folder."""
    with contextlib.suppress(OSError):
        return _stays(_behind_links(os.fspath(path)))
    return False


def _beside(name: str) -> tuple[int, str]:
    """Open a new file in the folder of `name`; return its descriptor and its path.

    Its mode follows the umask.
    """
    folder, base = os.path.split(name)
    for _ in range(100):
        path = os.path.join(folder, f".{base[:200]}.{secrets.token_hex(4)}")
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o666), path
    raise FileExistsError(errno.EEXIST, "no free name for a temporary file", name)


def writer_of(status: os.stat_result) -> str:
    """Return why a file's code is not trusted: somebody other than this user and root may have
    written it. Empty if no other user could.
    """
    if os.name != "posix":
        return ""  # Windows: the system keeps others out of a user's folders
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH:
        return "every user may write to it"
    return ""


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Generator[str]:
    """Return a folder that is gone after the block. FileError where none can be made."""
    try:
        found = tempfile.TemporaryDirectory(prefix=prefix)
    except OSError as e:
        raise FileError(
            f"no temporary folder can be made: {(e.strerror or str(e)).lower()}",
            notes=["TMPDIR names another place"],
        ) from None
    with found as folder:
        yield folder


def readable_name(path: str | os.PathLike[str]) -> str:
    """Return a path as text: bytes that are not UTF-8 are shown as `\\xff`."""
    return os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# ---- what was read ---------------------------------------------------------------------------

Identity = tuple[int, ...]
_GRAIN = 50_000_000  # nanoseconds: resolution of file times, with a margin
_COARSE = 2_500_000_000  # nanoseconds: the same for file systems with times in whole seconds


@dataclass(frozen=True)
class ReadFile:
    """A file that was opened to be read: its full path, and its identity when it was opened.

    If the path has the same identity later, the bytes are those that were read. None for a file
    changed so recently that another change might keep its time.
    """

    path: str
    identity: Identity | None


_READS: ContextVar[dict[str, ReadFile] | None] = ContextVar("mgx_files_read", default=None)


@contextlib.contextmanager
def noting_reads() -> Generator[dict[str, ReadFile]]:
    """Record the files that are opened inside, by full path."""
    found: dict[str, ReadFile] = {}
    token = _READS.set(found)
    try:
        yield found
    finally:
        _READS.reset(token)


def note_read(name: str, fd: int) -> None:
    """Record that a file was opened; readers call it right after opening."""
    reads = _READS.get()
    if reads is None:
        return
    path, status = os.path.realpath(name), os.fstat(fd)
    if is_young(status):
        time.sleep(_GRAIN / 1e9)
        status = os.fstat(fd)
    now = None if is_young(status) else identity(status)
    known = reads.get(path)
    if known is not None and known.identity != now:
        now = None  # read twice, with different contents
    reads[path] = ReadFile(path, now)


def identity(status: os.stat_result) -> Identity:
    """Return the facts that change with a file's bytes: size, times (ctime cannot be set),
    inode.
    """
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    )


def is_young(status: os.stat_result) -> bool:
    """Return whether a file was changed so recently that another change may get the same time."""
    changed = status.st_ctime_ns if os.name == "posix" else status.st_mtime_ns
    grain = _COARSE if status.st_ctime_ns % 1_000_000_000 == 0 else _GRAIN
    return time.time_ns() - changed <= grain


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file. Errors: OSError."""
    found = hashlib.sha256()
    with open(path, "rb") as f:
        buffer = bytearray(4 << 20)
        while n := f.readinto(buffer):
            found.update(memoryview(buffer)[:n])
    return found.hexdigest()


def read_bytes(path: str | os.PathLike[str]) -> memoryview:
    """Return the bytes of a regular file. FileError for anything else."""
    return read_with_status(path)[0]


def read_with_status(
    path: str | os.PathLike[str], *, mapped: bool = False, huge_pages: bool = False
) -> tuple[memoryview, os.stat_result]:
    """Return the bytes of a regular file, and its status.

    FileError for anything else. mapped: map a file of 4 MB or more, if only this user and root can
    truncate it (reading a truncated mapping kills the process). huge_pages: read a file of 4 MB or
    more to large pages instead.
    """
    name = os.fspath(path)
    try:
        fd = os.open(name, READ_FLAGS)
    except (OSError, ValueError) as e:
        reason = (getattr(e, "strerror", None) or str(e)).lower()
        raise FileError(f"cannot open the file: {reason}", location=name) from None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise FileError("expected a regular file", location=name)
    note_read(name, fd)
    with os.fdopen(fd, "rb", buffering=0) as f:
        huge = huge_pages and status.st_size >= _MAP_FROM
        if mapped and not huge and status.st_size >= _MAP_FROM and not writer_of(status):
            try:
                return memoryview(mmap.mmap(fd, 0, access=mmap.ACCESS_READ)), status
            except (OSError, ValueError):
                pass  # a file system without mappings
        # uncommitted until read into
        size = status.st_size
        data = huge_empty(size) if huge else np.empty(size, np.uint8)
        view, at = data.data, 0
        while at < len(view):
            try:
                got = f.readinto(view[at:])
            except OSError as e:
                reason = (e.strerror or str(e)).lower()
                raise FileError(f"cannot read the file: {reason}", location=name) from None
            if not got:
                raise FileError("the file was truncated while it was read", location=name)
            at += got
    return view, status

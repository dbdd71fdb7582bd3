"""Entries of the compile cache carried from one machine or image to another, as one tar file.

Entries are content-addressed, so they are valid on every machine. They hold machine code: importing
a file means trusting its author. Each entry is validated as a possibly damaged file, and signed by
this user.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from pathlib import Path

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic, temporary_folder
from mgx_mlir.targets.cache import KINDS, Cache
from mgx_mlir.targets.container import Container

# referenced entries come first, so that a program always has its modules and its pack
_ORDER = tuple(reversed(KINDS))
_MEMBER = re.compile(rf"({'|'.join(KINDS)})/([0-9a-f]{{40}})")


def export_entries(cache: Cache, path: str | os.PathLike[str]) -> int:
    """Write every valid entry to a tar file; return their number. Errors: FileError."""
    count = 0
    try:
        with atomic(path) as f, tarfile.open(fileobj=f, mode="w") as archive:
            for kind in _ORDER:
                for row in sorted(cache.entries(), key=lambda r: r.key):
                    if row.kind != kind or cache.get(kind, row.key) is None:
                        continue
                    archive.add(cache.path(kind, row.key), f"{kind}/{row.key}", filter=_plain)
                    count += 1
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot write the file: {why}", location=os.fspath(path)) from None
    return count


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Clear owner and times of an entry, so that equal entries give equal files."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def import_entries(cache: Cache, path: str | os.PathLike[str]) -> tuple[int, int]:
    """Add the entries of a tar file; return the number added, and of those that existed.

    Errors: FileError for another file, or a damaged entry; entries before it stay added.
    """
    name = os.fspath(path)
    added = known = 0
    try:
        with temporary_folder("mgx-import-") as folder, tarfile.open(name, "r:") as archive:
            for member in archive:
                found = _MEMBER.fullmatch(member.name)
                if found is None or not member.isreg():
                    raise FileError(f"'{member.name[:80]}' is not a cache entry", location=name)
                kind, key = found[1], found[2]
                source, at = archive.extractfile(member), Path(folder, "entry")
                assert source is not None  # source of a regular member
                with source, open(at, "wb") as f:
                    shutil.copyfileobj(source, f, 1 << 20)
                if cache.get(kind, key, check=False) is not None:  # type: ignore[arg-type]
                    known += 1
                    continue
                _take(cache, kind, key, at)
                added += 1
    except FileError as e:
        raise FileError(e.message, location=name) from None
    except (tarfile.TarError, EOFError, ValueError, UnicodeError) as e:
        why = str(e).lower() or "it ends early"
        raise FileError(f"not an archive of cache entries: {why}", location=name) from None
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot read the file: {why}", location=name) from None
    cache.evict()
    return added, known


def _take(cache: Cache, kind: str, key: str, path: Path) -> None:
    entry = Container(path)
    entry.verify()
    if entry.label != f"{kind}/{key}":
        raise FileError("an entry's name does not match its content")
    blobs: dict[str, bytes | np.ndarray] = {n: entry.blob(n) for n in entry.names}
    blobs.update(entry.arrays())
    if kind == "module":
        blobs = {n: bytes(v) if isinstance(v, np.ndarray) else v for n, v in blobs.items()}
    cache.put(kind, key, blobs, entry.meta)  # type: ignore[arg-type]

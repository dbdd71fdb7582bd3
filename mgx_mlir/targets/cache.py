"""The compile cache: what was compiled once is not compiled again, in this process or another.

Three kinds of entry, each one file:
    module    lowered bytecode + flags + compiler version -> .vmfb and how it was made
    program   model file + options + versions -> the manifest that names modules and a pack
    pack      the parameters of a program, mapped and used in place; shared between programs
Entries are written to a temporary name and renamed, carry checksums, and a damaged one is
removed and counts as a miss. A lock per key lets concurrent processes compile once.

Environment: MGX_CACHE=0 turns it off, MGX_CACHE_DIR moves it, MGX_CACHE_LIMIT bounds its bytes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import platformdirs

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.targets.container import Container, write_container

log = logging.getLogger(__name__)

Kind = Literal["module", "program", "pack"]
KINDS: tuple[Kind, ...] = ("module", "program", "pack")
DEFAULT_LIMIT = 10 * 10**9
_LAYOUT = "v1"  # a change of the entries' form gets a new folder
_OFF = ("0", "off", "false", "no")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def cache_root() -> Path:
    """The cache's folder: MGX_CACHE_DIR, else the user's cache folder."""
    given = os.environ.get("MGX_CACHE_DIR")
    return Path(given) if given else Path(platformdirs.user_cache_dir("mgx_mlir", False))


def parse_size(text: str) -> int:
    """`2G`, `500MB`, `1000000` in bytes. Errors: UsageError."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", text.upper())
    if not m:
        raise UsageError(f"'{text}' is not a size, expected a number such as 10G or 500M")
    return int(float(m[1]) * _UNITS[m[2]])


# --------------------------------------------------------------------------------------- keys


def digest(*parts: bytes | str | np.ndarray) -> str:
    """A key of several parts; where one ends and the next begins counts."""
    h = hashlib.blake2b(digest_size=20)
    for p in parts:
        if isinstance(p, np.ndarray):
            flat = np.ascontiguousarray(p).reshape(-1)
            view = flat.view(np.uint8).data if flat.size else memoryview(b"")
        else:
            view = memoryview(p.encode() if isinstance(p, str) else p)
        h.update(view.nbytes.to_bytes(8, "little"))
        h.update(view)
    return h.hexdigest()


def _unreadable(path: Any, e: OSError) -> FileError:
    why = (e.strerror or str(e)).lower()
    return FileError(f"cannot read the file: {why}", location=str(path))


def hash_file(path: Path) -> str:
    """blake2b of a file's bytes, about 1 GB/s."""
    h = hashlib.blake2b(digest_size=20)
    try:
        with open(path, "rb") as f:
            buffer = bytearray(4 << 20)
            while n := f.readinto(buffer):
                h.update(memoryview(buffer)[:n])
    except OSError as e:
        raise _unreadable(path, e) from e
    return h.hexdigest()


SOURCES = Path(__file__).resolve().parent.parent


@functools.cache
def toolchain() -> str:
    """What made an entry, beside its input: our sources and the packages they stand on.

    The sources count by name, size and time, so that an edited checkout does not get the
    programs of the code before the edit.
    """
    from importlib.metadata import PackageNotFoundError, version

    facts: list[str] = []
    for package in ("mgx-mlir", "torch-mlir", "iree-base-compiler", "onnx", "numpy"):
        try:
            facts.append(f"{package}={version(package)}")
        except PackageNotFoundError:
            facts.append(f"{package}=none")
    for folder, _, files in os.walk(SOURCES, followlinks=True):
        for name in files:
            if name.endswith(".py"):
                s = os.stat(os.path.join(folder, name))
                facts.append(f"{name} {s.st_size} {s.st_mtime_ns}")
    return digest(*sorted(facts))


def program_key(files: Iterable[str], options: Mapping[str, Any]) -> str:
    """The key of a program: digests of the model's files, and every option as a JSON value."""
    return digest(toolchain(), json.dumps(dict(options), sort_keys=True), *files)


def _identity(path: Path) -> list[int]:
    s = path.stat()
    return [s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino]


@dataclass
class CachedModule:
    """A compiled module from the cache: .vmfb bytes (mapped, aligned) and its record."""

    vmfb: np.ndarray
    record: dict[str, Any] = field(default_factory=dict)


@dataclass
class CachedProgram:
    """A whole compiled program from the cache: manifest, modules by name, parameters (mapped)."""

    manifest: dict[str, Any]
    modules: dict[str, CachedModule]
    params: dict[str, np.ndarray]


class Cache:
    """A folder of entries. Safe under threads and processes; see the module's first lines."""

    def __init__(self, root: Path | None = None, limit: int | None = None) -> None:
        self.root = (root or cache_root()) / _LAYOUT
        if limit is None:
            text = os.environ.get("MGX_CACHE_LIMIT")
            limit = parse_size(text) if text else DEFAULT_LIMIT
        self.limit = limit
        self._memo_lock = threading.Lock()
        self._written = 0
        self._scanned = 0.0

    # ------------------------------------------------------------------ entries

    def path(self, kind: Kind, key: str) -> Path:
        """Where an entry lives."""
        return self.root / kind / key[:2] / key

    def get(self, kind: Kind, key: str, *, check: bool = True) -> Container | None:
        """An entry, or None. A damaged one is removed and is None.

        check: compare all checksums; otherwise only when the file is not the one that was
        sealed when it was written (size, times, inode).
        """
        path = self.path(kind, key)
        try:
            entry = Container(path)
            if check or not self._sealed(path):
                entry.verify()
                if not check:
                    self._seal(path)
        except FileError as e:
            if path.exists():
                log.warning("a damaged cache entry is removed: %s", e)
                self.remove(kind, key)
            return None
        self._touch(path)
        return entry

    def put(
        self,
        kind: Kind,
        key: str,
        blobs: Mapping[str, bytes | np.ndarray],
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an entry. A full disk or a read-only folder is logged, not raised."""
        path = self.path(kind, key)
        try:
            write_container(path, blobs, meta, sync=kind == "pack")
            self._seal(path)
            self._written += path.stat().st_size
        except OSError as e:
            log.warning("the compile cache cannot write %s: %s", path, e)
            return
        self._evict_sometimes()

    def remove(self, kind: Kind, key: str) -> None:
        """Remove an entry; one that is mapped elsewhere stays usable there."""
        for p in (self.path(kind, key), self._seal_path(self.path(kind, key))):
            with contextlib.suppress(OSError):
                p.unlink()

    @staticmethod
    def _seal_path(path: Path) -> Path:
        return path.with_name(path.name + ".seal")

    def _seal(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            _write_text(self._seal_path(path), json.dumps(_identity(path)))

    def _sealed(self, path: Path) -> bool:
        try:
            return json.loads(self._seal_path(path).read_text()) == _identity(path)
        except (OSError, ValueError):
            return False

    def _touch(self, path: Path) -> None:
        """Note the use; the seal carries it, so that the entry's own times stay."""
        with contextlib.suppress(OSError):
            os.utime(self._seal_path(path))

    # ------------------------------------------------------------------ locks

    @contextlib.contextmanager
    def lock(self, kind: Kind, key: str) -> Iterator[None]:
        """Hold a key against other threads and processes; the hold ends with its holder.

        Nest in the order program, module, pack only: then no two holders can wait in a circle.
        """
        path = self.root / "locks" / f"{kind}-{key}"
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                f = open(path, "a+b")  # noqa: SIM115
            except OSError as e:
                log.warning("the compile cache cannot lock %s: %s", path, e)
                yield
                return
            with f:
                try:
                    _lock_file(f.fileno())
                except OSError as e:  # a file system without locks: a compile may run twice
                    log.warning("the compile cache cannot lock %s: %s", path, e)
                    yield
                    return
                try:
                    # the last holder unlinks the file: what we hold may be gone already
                    if not _same_file(f.fileno(), path):
                        continue
                    yield
                    return
                finally:
                    with contextlib.suppress(OSError):
                        if _same_file(f.fileno(), path):
                            path.unlink()
                    _unlock_file(f.fileno())

    # ------------------------------------------------------------------ modules

    def get_module(self, key: str) -> CachedModule | None:
        """A compiled module by its lowered key."""
        entry = self.get("module", key)
        if entry is None:
            return None
        return CachedModule(entry.blob("vmfb"), entry.meta)

    def put_module(self, key: str, vmfb: bytes, record: Mapping[str, Any]) -> None:
        """Store a compiled module with its record (JSON values)."""
        self.put("module", key, {"vmfb": vmfb}, record)

    # ------------------------------------------------------------------ programs

    def get_program(self, key: str) -> CachedProgram | None:
        """A program by its program key; None when any part of it is gone."""
        entry = self.get("program", key)
        if entry is None:
            return None
        try:
            manifest = dict(entry.meta["manifest"])
            wanted = dict(entry.meta["modules"])
            pack_key = entry.meta["pack"]
        except (KeyError, TypeError, ValueError):
            self.remove("program", key)
            return None
        modules: dict[str, CachedModule] = {}
        for name, module_key in wanted.items():
            module = self.get_module(module_key)
            if module is None:
                return None
            modules[name] = module
        params: dict[str, np.ndarray] = {}
        if pack_key:
            pack = self.get("pack", pack_key, check=False)
            if pack is None:
                return None
            params = pack.arrays()
        return CachedProgram(manifest, modules, params)

    def put_program(
        self,
        key: str,
        manifest: Mapping[str, Any],
        modules: Mapping[str, str],
        params: Mapping[str, np.ndarray],
    ) -> None:
        """Store a program: its manifest (JSON), the keys of its modules, its parameters.

        The parameters go into a pack named by their content; one that exists is reused.
        """
        pack_key = ""
        if params:
            pack_key = digest(
                *(
                    part
                    for name, a in sorted(params.items())
                    for part in (name, f"{a.dtype}{a.shape}", a)
                )
            )
            with self.lock("pack", pack_key):
                if self.get("pack", pack_key, check=False) is None:
                    self.put("pack", pack_key, params)
        meta = {"manifest": dict(manifest), "modules": dict(modules), "pack": pack_key}
        self.put("program", key, {}, meta)

    # ------------------------------------------------------------------ model files

    def file_digest(self, path: str | os.PathLike[str]) -> str:
        """The digest of a file, remembered by path, size, times and inode. Errors: FileError."""
        full = Path(path).resolve()
        try:
            now = _identity(full)
        except OSError as e:
            raise _unreadable(path, e) from e
        memo = self.root / "files" / digest(str(full))[:24]
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            row = json.loads(memo.read_text())
            if row["identity"] == now and row["path"] == str(full):
                return str(row["digest"])
        value = hash_file(full)
        # a file changed within the clock's grain of its reading could change again unseen
        if time.time_ns() - now[1] > 50_000_000 and _identity(full) == now:
            with contextlib.suppress(OSError):
                text = json.dumps({"path": str(full), "identity": now, "digest": value})
                _write_text(memo, text)
        return value

    # ------------------------------------------------------------------ size

    def size(self) -> int:
        """Bytes held by all entries."""
        return sum(size for _, size, _ in self._entries())

    def _entries(self) -> list[tuple[float, int, Path]]:
        rows = []
        for kind in KINDS:
            for p in (self.root / kind).glob("*/*"):
                with contextlib.suppress(OSError):
                    if p.name.startswith("."):  # a write that never ended
                        if time.time() - p.stat().st_mtime > 3600:
                            p.unlink()
                    elif not p.name.endswith(".seal"):
                        seal = self._seal_path(p)
                        used = seal.stat().st_mtime if seal.exists() else p.stat().st_mtime
                        rows.append((used, p.stat().st_size, p))
        return rows

    def evict(self) -> int:
        """Remove the least recently used entries beyond the limit; the number removed."""
        rows = sorted(self._entries())
        total, removed = sum(r[1] for r in rows), 0
        for _, size, path in rows:
            if total <= self.limit:
                break
            self.remove(path.parent.parent.name, path.name)  # type: ignore[arg-type]
            total -= size
            removed += 1
        self._written, self._scanned = 0, time.monotonic()
        return removed

    def _evict_sometimes(self) -> None:
        """A scan costs a walk of the folder: only after 1 % of the limit, or each minute."""
        if self._written > self.limit // 100 or time.monotonic() - self._scanned > 60:
            self.evict()

    def clear(self) -> None:
        """Remove every entry."""
        for _, _, path in self._entries():
            self.remove(path.parent.parent.name, path.name)  # type: ignore[arg-type]


def default_cache() -> Cache | None:
    """The cache that the environment asks for; None when MGX_CACHE turns it off."""
    if os.environ.get("MGX_CACHE", "1").strip().lower() in _OFF:
        return None
    return Cache()


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text)
    os.replace(temporary, path)


if os.name == "posix":
    import fcntl

    def _lock_file(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _unlock_file(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

else:
    import msvcrt

    def _lock_file(fd: int) -> None:
        while True:
            try:
                msvcrt.locking(fd, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                return
            except OSError:
                time.sleep(0.1)

    def _unlock_file(fd: int) -> None:
        with contextlib.suppress(OSError):
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]

"""The compile cache: stores compiled modules and programs, shared by processes.

Six kinds of entry, each one file:
    module    lowered bytecode + flags + compiler version -> .vmfb and how it was made
    program   model file + options + versions -> the manifest that names modules and a pack
    pack      the parameters of a program, mapped and used in place; shared between programs
    kernel    text of a kernel + flags + compiler version -> the library that has it
    library   compiled kernels, as one ELF file
    text      a compiled program + options of a printer -> what is printed of it
Entries are written to a temporary name and renamed, carry checksums, and a damaged one is
removed and counts as a miss. A lock per key lets concurrent processes compile once.

Entries are run as code. So only entries of this user, signed with a secret key, and of root are
trusted; see docs/security.md.

Environment: MGX_CACHE=0 turns it off, MGX_CACHE_DIR moves it, MGX_CACHE_LIMIT bounds its bytes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mgx_mlir.core import forks
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import Identity, file_sha256, identity, is_young, writer_of
from mgx_mlir.core.records import dataclass
from mgx_mlir.targets import background, locks
from mgx_mlir.targets.container import Container, blob_sum, write_container
from mgx_mlir.targets.digests import digest
from mgx_mlir.targets.private import Signer, make_private, read_own, signing_key, write_own
from mgx_mlir.targets.toolchain import toolchain

log = logging.getLogger(__name__)

Kind = Literal["module", "program", "pack", "kernel", "library", "text"]
Standing = Literal["own", "root's", "foreign"]  # owner of the folder
KINDS: tuple[Kind, ...] = ("module", "program", "pack", "kernel", "library", "text")
MODELS = "model"  # folder of what checkpoints of language models were converted to
DEFAULT_LIMIT = 10 * 10**9
_LAYOUT = "v3"  # a new format of entries gets a new folder
_OLDER = ("v1", "v2")
_PACK_WAIT = 60.0  # seconds; after that a process writes its own pack
_OFF = ("0", "off", "false", "no")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_FOLDER: ContextVar[str] = ContextVar("cache_folder", default="")


@contextlib.contextmanager
def cached_in(folder: str | os.PathLike[str]) -> Generator[None]:
    """Use another folder for the cache inside; the environment's where it is empty."""
    before = _FOLDER.set(os.fspath(folder) or _FOLDER.get())
    try:
        yield
    finally:
        _FOLDER.reset(before)


def cache_root() -> Path:
    """Return the cache's folder: MGX_CACHE_DIR, else the user's cache folder.

    Inside of `cached_in` it is the folder given there.

    A user without a home gets a folder named by uid in the temporary folder. Errors: FileError
    where none exists.
    """
    given = _FOLDER.get() or os.environ.get("MGX_CACHE_DIR")
    if given:
        return Path(given)
    import platformdirs  # only a cache needs it: a compiled program runs without

    with contextlib.suppress(RuntimeError):
        found = Path(platformdirs.user_cache_dir("mgx_mlir", False))
        if found.is_absolute():  # an unknown home stays `~`
            return found
    try:
        user = os.getuid() if hasattr(os, "getuid") else 0  # Windows: the folder is the user's
        return Path(tempfile.gettempdir()) / f"mgx_mlir-{user}"
    except OSError as e:
        raise FileError(f"there is no folder for a cache: {e.strerror or e}".lower(),
                        notes=["name one in MGX_CACHE_DIR"]) from None  # fmt: skip


def parse_size(text: str) -> int:
    """Parse `2G`, `500MB` or `1000000` to bytes. Errors: UsageError."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", text.upper())
    if not m:
        raise UsageError(f"'{text}' is not a size, expected a number such as 10G or 500M")
    return int(float(m[1]) * _UNITS[m[2]])


# --------------------------------------------------------------------------------------- keys


def _unreadable(path: str | os.PathLike[str], e: OSError) -> FileError:
    why = (e.strerror or str(e)).lower()
    return FileError(f"cannot read the file: {why}", location=str(path))


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file. Errors: FileError."""
    try:
        return file_sha256(path)
    except OSError as e:
        raise _unreadable(path, e) from e


def _identity(path: Path) -> list[int]:
    return list(identity(path.stat()))


@dataclass(frozen=True)
class EntryRow:
    """Facts about an entry without reading it; `used` is in seconds since the epoch."""

    kind: Kind | Literal["model"]
    key: str
    size: int
    used: float


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
        self.standing = _standing(self.root)
        self._key: bytes | None = None
        self._memo_lock = forks.lock()
        self._written = 0
        self._scanned = 0.0

    # ------------------------------------------------------------------ entries

    def path(self, kind: Kind, key: str) -> Path:
        """Return the path of an entry."""
        return self.root / kind / key[:2] / key

    def get(self, kind: Kind, key: str, *, check: bool = True) -> Container | None:
        """Return an entry, or None. A damaged one is removed and is None.

        `check`: compare all checksums. Otherwise compare them only if the file's identity (size,
        times, inode) differs from the one recorded at writing.
        """
        path = self.path(kind, key)
        if not path.exists():
            return None
        signer = self._signer(kind, key)
        if signer is None:
            return None
        try:
            entry = Container(path, signer)
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
        *,
        sums: Mapping[str, str] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Write an entry. A full disk or a read-only folder is logged, not raised.

        sums, check: see `write_container`.
        """
        path = self.path(kind, key)
        signer = self._signer(kind, key)
        if self.standing != "own" or signer is None:
            return
        is_pack = kind == "pack"  # loads do not verify checksums each time
        try:
            write_container(path, blobs, meta, sync=is_pack, signer=signer, sums=sums, check=check)
            self._seal(path)
            self._written += path.stat().st_size
        except OSError as e:
            log.warning("the compile cache cannot write %s: %s", path, e)
            return
        self._evict_sometimes()

    def may_have(self, kind: Kind) -> bool:
        """Say whether there may be entries of a kind."""
        return self.standing != "foreign" and (self.root / kind).exists()

    def remove(self, kind: Kind, key: str) -> None:
        """Remove an entry; one that is mapped elsewhere stays usable there."""
        if self.standing != "own":
            return
        for p in (self.path(kind, key), self._seal_path(self.path(kind, key))):
            with contextlib.suppress(OSError):
                p.unlink()

    def _signer(self, kind: Kind, key: str) -> Signer | None:
        """Return the signer of this user's entries; None where no entry is trusted."""
        if self.standing == "foreign":
            return None
        if self.standing == "root's":
            return Signer(b"", f"{kind}/{key}")  # no signature: the owner of each file is checked
        if self._key is None:
            is_new = not self.root.exists()
            self._key = signing_key(self.root / "key")
            if self._key is None:
                log.warning("the compile cache cannot write its key in %s", self.root)
                self.standing = "foreign"
                return None
            if is_new:
                for name in _OLDER:
                    shutil.rmtree(self.root.parent / name, ignore_errors=True)
        return Signer(self._key, f"{kind}/{key}")

    @staticmethod
    def _seal_path(path: Path) -> Path:
        return path.with_name(path.name + ".seal")

    def _seal(self, path: Path) -> None:
        if self.standing != "own":
            return
        with contextlib.suppress(OSError):
            _write_text(self._seal_path(path), json.dumps(_identity(path)))

    def _sealed(self, path: Path) -> bool:
        try:
            return json.loads(read_own(self._seal_path(path))) == _identity(path)
        except (OSError, ValueError):
            return False

    def _touch(self, path: Path) -> None:
        """Record the use in the seal's times, so that the entry's own times stay."""
        with contextlib.suppress(OSError):
            os.utime(self._seal_path(path))

    # ------------------------------------------------------------------ locks

    @contextlib.contextmanager
    def lock(self, kind: Kind, key: str, seconds: float | None = None) -> Iterator[float]:
        """Lock a key against other threads and processes; a lock ends with its process.

        Yields the seconds waited. No lock is taken, and work may be done twice, where the holder is
        stopped or the file system has no locks. seconds: the longest wait. Errors: Busy.
        Nest in the order program, module, pack only: then no two holders can wait in a circle.
        """
        path = self.root / "locks" / f"{kind}-{key}"
        if self.standing != "own":
            yield 0.0
            return
        waited = 0.0
        while True:
            try:
                make_private(path.parent)
                f = open(path, "a+b", opener=_open_private)  # noqa: SIM115
            except OSError as e:
                log.warning("the compile cache cannot lock %s: %s", path, e)
                yield waited
                return
            with f:
                try:
                    left = None if seconds is None else max(seconds - waited, 0.0)
                    waited += locks.acquire(f.fileno(), left, _say_waiting)
                except locks.Stopped as e:
                    log.warning(
                        "%s compiles the same program but is stopped: this process compiles it too",
                        locks.holder_text(e.holder),
                    )
                    yield waited + e.waited
                    return
                except OSError as e:  # a file system without locks: a compile may run twice
                    log.warning("the compile cache cannot lock %s: %s", path, e)
                    yield waited
                    return
                try:
                    # the last holder unlinks the file, so our lock may be on an unlinked file
                    if not _same_file(f.fileno(), path):
                        continue
                    yield waited
                    return
                finally:
                    with contextlib.suppress(OSError):
                        if _same_file(f.fileno(), path):
                            path.unlink()
                    locks.release(f.fileno())

    # ------------------------------------------------------------------ modules

    def get_module(self, key: str) -> CachedModule | None:
        """Return a compiled module by its lowered key."""
        entry = self.get("module", key)
        if entry is None:
            return None
        return CachedModule(entry.blob("vmfb"), entry.meta)

    def put_module(self, key: str, vmfb: bytes, record: Mapping[str, Any]) -> None:
        """Store a compiled module with its record (JSON values)."""
        self.put("module", key, {"vmfb": vmfb}, record)

    # ------------------------------------------------------------------ texts

    def text(
        self, files: Iterable[str], options: Mapping[str, Any], make: Callable[[], str]
    ) -> str:
        """Return a text that `files` and JSON values decide; `make` gives one that is not here."""
        key = self.program_key(files, options)
        entry = self.get("text", key)
        if entry is not None:
            return entry.blob("text").tobytes().decode()
        made = make()
        self.put("text", key, {"text": made.encode()})
        return made

    # ------------------------------------------------------------------ programs

    def program_key(self, files: Iterable[str], options: Mapping[str, Any]) -> str:
        """Return the key of a program: digests of the model's files, all options as JSON values."""
        return digest(toolchain(self.memos), json.dumps(dict(options), sort_keys=True), *files)

    @property
    def memos(self) -> Path | None:
        """Return the folder of digests of files; None where none may be written."""
        return self.root / "files" if self.standing == "own" else None

    def get_program(self, key: str) -> CachedProgram | None:
        """Return a program by its program key; None when any part of it is missing."""
        background.settle((self.root, key))
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
        """Store a program: its manifest (JSON), the keys of its modules, its parameters."""
        self.put_program_of(key, manifest, modules, self.put_pack(params))

    def put_program_of(
        self, key: str, manifest: Mapping[str, Any], modules: Mapping[str, str], pack: str
    ) -> None:
        """Store a program whose parameters are in the pack of this key, empty for none."""
        meta = {"manifest": dict(manifest), "modules": dict(modules), "pack": pack}
        self.put("program", key, {}, meta)

    def put_pack(
        self, params: Mapping[str, np.ndarray], check: Callable[[], None] = lambda: None
    ) -> str:
        """Store parameters in a pack named by their content, and return its key; empty for none.

        A pack that exists is reused. check: called each few milliseconds, and may raise.
        """
        if not params:
            return ""
        sums = {name: blob_sum(a, check) for name, a in sorted(params.items())}
        key = digest(
            *(
                part
                for n, s in sums.items()
                for part in (n, f"{params[n].dtype}{params[n].shape}", s)
            )
        )
        with contextlib.suppress(locks.Busy), self.lock("pack", key, _PACK_WAIT):
            if self.get("pack", key, check=False) is None:
                self.put("pack", key, params, sums=sums, check=check)
        return key

    # ------------------------------------------------------------------ model files

    def file_digest(
        self, path: str | os.PathLike[str], read: Callable[[Path], str] = hash_file
    ) -> str:
        """Return the digest of a file, kept by path, size, times and inode. Errors: FileError.

        read: makes the digest, the same way for a path each time.
        """
        return self.dated_digest(path, read)[0]

    def dated_digest(
        self, path: str | os.PathLike[str], read: Callable[[Path], str] = hash_file
    ) -> tuple[str, Identity | None]:
        """Return the digest of a file and its identity; None if it changed or is young."""
        full = Path(path).resolve()
        try:
            status = full.stat()
        except OSError as e:
            raise _unreadable(path, e) from e
        now = list(identity(status))
        memo = self.root / "files" / digest(str(full), read.__name__)[:24]
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            row = json.loads(read_own(memo))
            if row["identity"] == now and row["path"] == str(full):
                return str(row["digest"]), tuple(now)
        value = read(full)
        # a file changed just before its reading could change again with the same time
        try:
            if is_young(status) or _identity(full) != now:
                return value, None
        except OSError as e:
            raise _unreadable(path, e) from e
        if self.standing == "own":
            with contextlib.suppress(OSError):
                text = json.dumps({"path": str(full), "identity": now, "digest": value})
                _write_text(memo, text)
        return value, tuple(now)

    # ------------------------------------------------------------------ size

    def size(self) -> int:
        """Return the bytes held by all entries."""
        background.settle()
        return sum(size for _, size, _ in self._entries())

    def entries(self) -> list[EntryRow]:
        """Return every entry: its kind, key, bytes, and when it was used last."""
        background.settle()
        return [EntryRow(_kind(p), p.name, size, used) for used, size, p in self._entries()]

    def _entries(self) -> list[tuple[float, int, Path]]:
        rows = []
        for kind in KINDS:
            for p in (self.root / kind).glob("*/*"):
                with contextlib.suppress(OSError):
                    if p.name.startswith("."):  # an unfinished write
                        if time.time() - p.stat().st_mtime > 3600:
                            p.unlink()
                    elif not p.name.endswith(".seal"):
                        seal = self._seal_path(p)
                        used = seal.stat().st_mtime if seal.exists() else p.stat().st_mtime
                        rows.append((used, p.stat().st_size, p))
        for p in (self.root / MODELS).glob("*"):
            with contextlib.suppress(OSError):
                size = sum(f.stat().st_size for f in (p.iterdir() if p.is_dir() else [p]))
                rows.append((p.stat().st_mtime, size, p))
        return rows

    def _drop(self, path: Path) -> None:
        """Remove what `_entries` lists."""
        if (kind := _kind(path)) != MODELS:
            self.remove(kind, path.name)
        elif self.standing == "own":
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def evict(self) -> int:
        """Remove the least recently used entries beyond the limit; return their number."""
        rows = sorted(self._entries())
        total, removed = sum(r[1] for r in rows), 0
        for _, size, path in rows:
            if total <= self.limit:
                break
            self._drop(path)
            total -= size
            removed += 1
        self._remove_free_locks()
        self._written, self._scanned = 0, time.monotonic()
        return removed

    def _remove_free_locks(self) -> None:
        """Remove lock files whose holders were killed, because they may never be used again."""
        for path in (self.root / "locks").glob("*"):
            with contextlib.suppress(OSError, locks.Busy), open(path, "a+b") as f:
                locks.acquire(f.fileno(), 0.0)
                if _same_file(f.fileno(), path):
                    path.unlink()

    def _evict_sometimes(self) -> None:
        """Evict after writing 1 % of the limit, or once a minute: a scan walks the folder."""
        if self._written > self.limit // 100 or time.monotonic() - self._scanned > 60:
            self.evict()

    def clear(self) -> None:
        """Remove every entry."""
        background.settle()
        for _, _, path in self._entries():
            self._drop(path)


def _kind(path: Path) -> Any:
    return MODELS if path.parent.name == MODELS else path.parent.parent.name


def default_cache() -> Cache | None:
    """Return the cache that the environment asks for; None when MGX_CACHE turns it off."""
    if os.environ.get("MGX_CACHE", "1").strip().lower() in _OFF:
        return None
    try:
        found = Cache()
    except FileError:
        return None
    return None if found.standing == "foreign" else found


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def _write_text(path: Path, text: str) -> None:
    write_own(path, text.encode())


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _say_waiting(holder: int) -> None:
    # another thread of this process ends soon
    say = log.info if holder == os.getpid() else log.warning
    say("waiting for %s, which compiles the same program", locks.holder_text(holder))


_told: set[str] = set()  # folders of other users that were logged


def _standing(folder: Path) -> Standing:
    """Return the owner of a cache's folder; a missing one will be this user's."""
    try:
        status = folder.stat()
    except OSError:
        return "own"  # the folder will be made, or writing to it reports the error
    why = writer_of(status)
    if not why and os.name == "posix" and status.st_uid != os.geteuid():
        return "root's"
    if not why or status.st_uid == os.geteuid():
        with contextlib.suppress(OSError):
            make_private(folder)
        return "own"
    if str(folder) not in _told:
        _told.add(str(folder))
        log.warning("the compile cache in %s is not used: %s", folder, why)
    return "foreign"

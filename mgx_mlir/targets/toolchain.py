"""Digest of the code that makes cache entries: our sources, their packages, plugins.

Sources and data tables count by name and content. So an edited checkout gets new entries, and a
rebuilt environment reuses the old ones. Reading them takes 0.1 s of CPU, so the digest is cached
with the identities (size, times, inode) of its files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.machinery
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mgx_mlir.core import plugins
from mgx_mlir.core.files import identity, is_young
from mgx_mlir.targets.digests import digest
from mgx_mlir.targets.private import read_own, write_own

SOURCES = Path(__file__).resolve().parent.parent
PACKAGES = (
    "mgx-mlir", "torch-mlir", "iree-base-compiler", "iree-base-runtime", "onnx", "numpy",
    "ml_dtypes",
)  # fmt: skip
TRACERS = ("torch", "transformers", "onnxscript")  # packages that a checkpoint's graph is made by
_METADATA = (".dist-info", ".egg-info")
_STATED = ("METADATA", "PKG-INFO", "entry_points.txt")  # files of a package that are read


class _Young(Exception):
    """A file was changed so recently that its next change may keep its times."""


@dataclass(frozen=True)
class _Facts:
    """The digest, and the versions of `TRACERS`."""

    digest: str
    versions: Sequence[str]


def toolchain(kept: Path | None = None) -> str:
    """Return the digest; `kept` is a folder that caches it."""
    return facts(kept).digest


def tracers(kept: Path | None = None) -> list[str]:
    """Return the names and versions of `TRACERS`; `kept` as for `toolchain`."""
    return list(facts(kept).versions)


@functools.cache
def facts(kept: Path | None) -> _Facts:
    """Return both; `kept` as for `toolchain`."""
    state = None if kept is None else _state()
    if kept is None or state is None:
        return _read()
    name, now = state
    memo = kept / name
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        row = json.loads(read_own(memo))
        if row["identity"] == now:
            return _Facts(str(row["digest"]), tuple(map(str, row["tracers"])))
    found = _read()
    if not plugins.all_plugins() and _state() == state:
        with contextlib.suppress(OSError):
            row = {"identity": now, "digest": found.digest, "tracers": found.versions}
            write_own(memo, json.dumps(row).encode())
    return found


def _read() -> _Facts:
    found = _versions(PACKAGES)
    for path in _sources():
        with open(path, "rb") as f:
            content = hashlib.blake2b(f.read()).hexdigest()
        found.append(f"{os.path.relpath(path, SOURCES).replace(os.sep, '/')} {content}")
    return _Facts(digest(*sorted(found), *plugins.facts()), tuple(_versions(TRACERS)))


def _versions(packages: Iterable[str]) -> list[str]:
    """Return packages with their versions."""
    from importlib.metadata import PackageNotFoundError, version  # 2.6 MB, and slow to load

    found: list[str] = []
    for package in packages:
        try:
            found.append(f"{package}={version(package)}")
        except PackageNotFoundError:
            found.append(f"{package}=none")
    return found


def _sources() -> Iterator[str]:
    """Name our sources and tables; links to folders are followed."""
    for folder, folders, files in os.walk(SOURCES, followlinks=True):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        for name in files:
            if name.endswith((".py", ".json")):
                yield os.path.join(folder, name)


def _state() -> tuple[str, str] | None:
    """Return the cache file's name, and a digest of the identities of all files that are read.

    None where the digest may depend on other files, or a file is young.
    """
    if plugins.added_plugins() or _finds_elsewhere():
        return None
    rows = [os.environ.get(plugins.SWITCH, "")]
    places: list[str] = []
    try:
        rows += (f"{path} {_identity(path)}" for path in _sources())
        for place in dict.fromkeys(sys.path):
            found = list(_metadata(place))
            if found:
                places.append(place)
                rows += found
    except (OSError, _Young):
        return None
    return digest("toolchain", str(SOURCES), *places)[:24], digest(*sorted(rows))


def _finds_elsewhere() -> bool:
    """Return whether packages may be found outside the folders of `sys.path`."""
    return any(
        hasattr(finder, "find_distributions") and finder is not importlib.machinery.PathFinder
        for finder in sys.meta_path
    )


def _metadata(place: str) -> Iterator[str]:
    """Yield the state of the packages in an entry of `sys.path`."""
    if os.path.isfile(place):  # an archive
        yield f"{place} {_identity(place)}"
        return
    try:
        names = os.listdir(place or ".")
    except OSError:
        return  # a missing folder
    for name in names:
        if name.endswith(_METADATA):
            at = os.path.join(place, name)
            yield f"{at} {_identity(at)}"
            for file in _STATED:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    path = os.path.join(at, file)
                    yield f"{path} {_identity(path)}"


def _identity(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    if is_young(status):
        raise _Young
    return identity(status)

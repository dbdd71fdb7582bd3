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
from collections.abc import Iterator
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
_METADATA = (".dist-info", ".egg-info")
_STATED = ("METADATA", "PKG-INFO", "entry_points.txt")  # files of a package that are read


class _Young(Exception):
    """A file was changed so recently that its next change may keep its times."""


@functools.cache
def toolchain(kept: Path | None = None) -> str:
    """Return the digest; `kept` is a folder that caches it."""
    state = None if kept is None else _state()
    if kept is None or state is None:
        return _digest()
    name, now = state
    memo = kept / name
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        row = json.loads(read_own(memo))
        if row["identity"] == now:
            return str(row["digest"])
    found = _digest()
    if not plugins.all_plugins() and _state() == state:
        with contextlib.suppress(OSError):
            write_own(memo, json.dumps({"identity": now, "digest": found}).encode())
    return found


def _digest() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    facts: list[str] = []
    for package in PACKAGES:
        try:
            facts.append(f"{package}={version(package)}")
        except PackageNotFoundError:
            facts.append(f"{package}=none")
    for path in _sources():
        with open(path, "rb") as f:
            content = hashlib.blake2b(f.read()).hexdigest()
        facts.append(f"{os.path.relpath(path, SOURCES).replace(os.sep, '/')} {content}")
    return digest(*sorted(facts), *plugins.facts())


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

"""Libraries of compiled kernels, and the cache of kernels by their text."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mgx_mlir.core import progress
from mgx_mlir.core.records import dataclass
from mgx_mlir.targets.cache import Cache, digest
from mgx_mlir.targets.child import code_version
from mgx_mlir.targets.worker import OF_PROCESS
from mgx_mlir.targets.worker_kernels import Kernel, library_text
from mgx_mlir.targets.worker_pool import Together

# Bytes of text of a library's kernels. Each library costs 0.07 s of IREE's own start
# (docs/design/37-kernels-apart.md), and eight kernels of a convolution net ten times that. A
# constant, so that the module does not depend on the machine.
LIBRARY_BYTES = 260_000
Count = tuple[int, int, int]  # workgroups of a launch


@dataclass(frozen=True)
class Form:
    """The format of compiled kernels, and the phase that makes them."""

    format: str  # name of the format for IREE's loader
    start: str = ""  # IREE's phase that makes kernels; empty: our lowering makes them
    process: tuple[str, ...] = ()  # flags of the workers' processes
    bytes: int = LIBRARY_BYTES  # text of a library's kernels


# forms of CPU code, by the name of the machine
CPU_FORMS = {
    "x86_64": Form("embedded-elf-x86_64"), "aarch64": Form("embedded-elf-arm_64"),
}  # fmt: skip
# for GPUs IREE splits a program into kernels, and its code generation counts workgroups
ROCM = Form("rocm-hsaco-fb", "flow", OF_PROCESS, 20_000)  # small libraries cost nothing extra


@dataclass(frozen=True)
class Library:
    """Compiled kernels: a file for IREE's loader."""

    code: bytes
    kernels: tuple[str, ...]  # key of each, in the order of their numbers
    counts: tuple[Count, ...] = ()  # workgroups of each, where code generation counts them


class Libraries:
    """Requests for libraries of kernels, and cached kernels.

    cpu: identity of the machine that code for `host` is for.
    """

    def __init__(
        self, flags: Sequence[str], cpu: str, cache: Cache | None, form: Form | None = None
    ) -> None:
        self.flags, self.cpu, self.cache = tuple(flags), cpu, cache
        self.form = form or CPU_FORMS[platform.machine()]
        self.resources = ""  # stream.resources of the program
        self._libraries: dict[str, Library | None] = {}  # libraries of the cache, by name

    def request(self, group: Sequence[Kernel]) -> tuple[dict[str, Any], bytes]:
        """Return the request for a library of kernels."""
        return {"kind": "library", "flags": list(self.flags)}, self._text(group)

    def _text(self, group: Sequence[Kernel]) -> bytes:
        return library_text(group, self.resources, counted=bool(self.form.start)).encode()

    def made(self, group: Sequence[Kernel], header: Mapping[str, Any], code: bytes) -> Library:
        """Return the library of a reply. Errors: Together for another format."""
        if header["format"] != self.form.format:
            raise Together(f"a library has the format {header['format']}")
        progress.compiled(len(group))
        return Library(code, tuple(k.key for k in group), _counts(header["counts"]))

    @functools.cached_property
    def salt(self) -> str:
        """Digest of what made kernels, for their names; empty without a cache."""
        if self.cache is None:
            return ""
        return self.cache.program_key((), {"kernels": [code_version(), self.cpu, *self.flags]})

    def _key(self, kernel: str) -> str:
        return digest(kernel, self.resources, code_version(), self.cpu, *self.flags)

    def found(self, kernels: Iterable[str]) -> dict[str, tuple[Library, int]]:
        """Return the library, and the number in it, of each cached kernel."""
        if self.cache is None:
            return {}
        out: dict[str, tuple[Library, int]] = {}
        for key in sorted(kernels):
            entry = self.cache.get("kernel", self._key(key))
            library = None if entry is None else self._library(str(entry.meta["library"]))
            if library is not None and key in library.kernels:
                out[key] = library, library.kernels.index(key)
        return out

    def named(self, name: str) -> tuple[str, Library, int] | None:
        """Return the key of a kernel by its name, its library, and its number in there."""
        entry = None if self.cache is None else self.cache.get("kernel", name)
        if entry is None:
            return None
        key, library = str(entry.meta["kernel"]), self._library(str(entry.meta["library"]))
        if library is None or key not in library.kernels:
            return None
        return key, library, library.kernels.index(key)

    def _library(self, name: str) -> Library | None:
        """Return a library of the cache, which is read once."""
        if name not in self._libraries:
            assert self.cache is not None
            self._libraries[name] = _read(self.cache, name)
        return self._libraries[name]

    def keep(self, libraries: Sequence[Library]) -> None:
        """Put libraries into the cache."""
        if self.cache is None:
            return
        for library in libraries:
            name = self._name(library)
            meta = {"kernels": list(library.kernels), "counts": list(map(list, library.counts))}
            self.cache.put("library", name, {"code": library.code}, meta)
            for key in library.kernels:
                self.cache.put("kernel", self._key(key), {}, {"library": name})

    def keep_names(self, named: Mapping[str, str], libraries: Iterable[Library]) -> None:
        """Put the keys of kernels that have names into the cache."""
        if self.cache is None:
            return
        where = {key: self._name(library) for library in libraries for key in library.kernels}
        for name, key in named.items():
            if key in where:
                meta = {"kernel": key, "library": where[key]}
                self.cache.put("kernel", name, {}, meta)

    def _name(self, library: Library) -> str:
        return digest(*map(self._key, library.kernels))


def _read(cache: Cache, name: str) -> Library | None:
    entry = cache.get("library", name)
    if entry is None:
        return None
    kernels = tuple(map(str, entry.meta["kernels"]))
    return Library(bytes(entry.blob("code")), kernels, _counts(entry.meta["counts"]))


def _counts(rows: Sequence[Sequence[int]]) -> tuple[Count, ...]:
    return tuple((int(x), int(y), int(z)) for x, y, z in rows)


def kernels_of(
    rows: Sequence[Sequence[Any]], texts: bytes
) -> tuple[dict[str, str], dict[str, Kernel]]:
    """Return the key of each name, and the kernel of each key, in a worker's reply."""
    named: dict[str, str] = {}
    kernels: dict[str, Kernel] = {}
    at = 0
    for name, key, layout, size in rows:
        named[name] = key
        kernels.setdefault(key, Kernel(key, texts[at : at + size].decode(), layout))
        at += size
    return named, kernels


def groups_of(kernels: Sequence[Kernel], size: int = LIBRARY_BYTES) -> list[list[Kernel]]:
    """Distribute kernels over libraries of `size` bytes of text each, by their own text only."""
    total = sum(len(k.text) for k in kernels)
    count = min(max(round(total / size), 1), len(kernels))
    groups: list[list[Kernel]] = [[] for _ in range(count)]
    sizes = [0] * count
    for k in sorted(kernels, key=lambda k: (-len(k.text), k.key)):
        least = sizes.index(min(sizes))
        groups[least].append(k)
        sizes[least] += len(k.text)
    return [g for g in groups if g]


__all__ = [
    "CPU_FORMS",
    "LIBRARY_BYTES",
    "ROCM",
    "Form",
    "Libraries",
    "Library",
    "groups_of",
    "kernels_of",
]

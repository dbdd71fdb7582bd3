"""Compiles of kernels during the lowering of their program.

The lowering asks for each kernel by a name that its description has in all programs, and does not
build one that is cached. Others are added as soon as they are built. Batches go to workers, which
reply with the kernels' keys. Kernels that are not cached are compiled to libraries on other cores.
The program's module has names in place of its kernels. A kernel that is added but never launched
costs only time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mgx_mlir.targets.diagnostics import CompileFailed
from mgx_mlir.targets.kernel_libraries import Libraries, Library, kernels_of
from mgx_mlir.targets.worker_kernels import Kernel
from mgx_mlir.targets.worker_pool import Header, Pool, Together

log = logging.getLogger(__name__)

# Bytes of MLIR bytecode of a batch, a library's text in short (kernel_libraries.LIBRARY_BYTES)
BATCH_BYTES = 50_000


class Stream:
    """The kernels of one program. Call `close` at the end.

    least: bytes of kernels of which a module is taken apart; smaller ones keep their kernels.
    """

    def __init__(self, pool: Pool, libraries: Libraries, least: int = 0) -> None:
        self.pool, self.libraries, self.least = pool, libraries, least
        self.named: dict[str, str] = {}  # keys of kernels by the names that the lowering gave
        self.rest: dict[str, Kernel] = {}  # kernels of the last batch, in no library yet
        self._known: set[str] = set()  # names of kernels that were not built
        self._bytes = 0  # bytes of kernels that were built
        self.found: dict[str, tuple[Library, int]] = {}  # cached kernels, by key
        self.groups: list[list[Kernel]] = []  # kernels of each library to compile
        self.made: dict[int, Library] = {}  # finished libraries, by number
        self._failed: Together | CompileFailed | None = None
        self._batch: list[tuple[str, bytes]] = []
        self._sent = self._read = 0  # batches
        self._is_last = False  # the last batch that was sent is short
        self._names: list[list[str]] = []  # names in each batch that was sent
        self._replies: dict[
            int, tuple[Header, bytes]
        ] = {}  # replies that arrived before an earlier batch's

    @property
    def salt(self) -> str:
        """Text in each kernel's name: what its code follows from beside its description."""
        return self.libraries.salt

    @property
    def holds(self) -> bool:
        """Say whether the module may leave its kernels out: all of them are here by name."""
        return bool(self._known) or (self._failed is None and self._bytes >= self.least)

    def known(self, name: str) -> bool:
        """Say whether the cache has a kernel, so that none need be built."""
        if name not in self._known:
            row = self.libraries.named(name)
            if row is None:
                return False
            self._known.add(name)
            self.named[name], self.found[row[0]] = row[0], row[1:]
        return True

    def add(self, name: str, module: bytes) -> None:
        """Take a kernel, a module of one flow.executable. Errors are kept for `planned`."""
        self._bytes += len(module)
        if self._failed is not None:
            return
        self._batch.append((name, module))
        try:
            if sum(len(m) for _, m in self._batch) >= BATCH_BYTES:
                self.pool.widen()
                self._send()
            self.pump()
        except (Together, CompileFailed) as e:
            self._failed = e

    def pump(self) -> None:
        """Send and read without waiting."""
        self.pool.pump()

    def _send(self) -> None:
        number, batch = self._sent, self._batch
        self._sent, self._batch = number + 1, []
        self._names.append([name for name, _ in batch])
        header = {"kind": "kernels", "sizes": [len(m) for _, m in batch]}
        payload = b"".join(m for _, m in batch)
        self.pool.submit(header, payload, lambda h, p: self._plan(number, h, p))

    def _plan(self, number: int, header: Header, payload: bytes) -> None:
        """Plan the libraries in the order of batches, not of replies."""
        self._replies[number] = header, payload
        while self._read in self._replies:
            header, payload = self._replies.pop(self._read)
            self.libraries.resources = header["resources"]
            numbers, kernels = kernels_of(header["kernels"], payload)
            names = self._names[self._read]
            self.named.update((names[int(number)], key) for number, key in numbers.items())
            self._read += 1
            planned = {k.key for group in self.groups for k in group}
            new = {key: k for key, k in kernels.items() if key not in planned | set(self.found)}
            self.found.update(self.libraries.found(new))
            missing = {key: k for key, k in sorted(new.items()) if key not in self.found}
            if self._is_last and self._read == self._sent:
                self.rest = missing  # too few for a library of their own
            elif missing:
                self.compile(list(missing.values()))

    def compile(self, group: Sequence[Kernel]) -> None:
        """Queue a library of these kernels; `made` has it once the pool has been drained."""
        number = len(self.groups)
        self.groups.append(list(group))

        def read(header: Header, code: bytes) -> None:
            self.made[number] = self.libraries.made(group, header, code)

        self.pool.submit(*self.libraries.request(group), read)

    def end(self) -> None:
        """Send the last kernels. Errors: Together, CompileFailed."""
        if self._failed is not None:
            raise self._failed
        self._is_last = bool(self._batch)
        if self._batch:
            self._send()
            self.pump()

    def planned(self) -> None:
        """Wait until all kernels have keys, and all but those of `rest` libraries, behind `end`.

        Errors: Together, CompileFailed.
        """
        while self._read < self._sent:
            self.pool.wait()

    def new_names(self) -> dict[str, str]:
        """Return the keys of kernels that were built, by their names."""
        return {name: key for name, key in self.named.items() if name not in self._known}

    def close(self) -> None:
        """End running compiles."""
        self.pool.close()


__all__ = ["BATCH_BYTES", "Stream"]

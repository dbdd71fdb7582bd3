"""Compiles of kernels during the lowering of their program.

The lowering adds each kernel as soon as it is built. Batches go to workers, which reply with the
kernels' keys. Kernels that are not cached are compiled to libraries on other cores. The program's
compile finds its kernels by these keys. A kernel that is added but never launched costs only time.
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
    """The kernels of one program. Call `close` at the end, if `finish` was not called."""

    def __init__(self, pool: Pool, libraries: Libraries) -> None:
        self.pool, self.libraries = pool, libraries
        self.found: dict[str, tuple[Library, int]] = {}  # cached kernels, by key
        self.groups: list[list[Kernel]] = []  # kernels of each library to compile
        self.made: dict[int, Library] = {}  # finished libraries, by number
        self._failed: Together | CompileFailed | None = None
        self._batch: list[bytes] = []
        self._sent = self._read = 0  # batches
        self._replies: dict[
            int, tuple[Header, bytes]
        ] = {}  # replies that arrived before an earlier batch's

    def add(self, module: bytes) -> None:
        """Take a kernel, a module of one flow.executable. Errors are kept for `finish`."""
        if self._failed is not None:
            return
        self._batch.append(module)
        try:
            if sum(map(len, self._batch)) >= BATCH_BYTES:
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
        header = {"kind": "kernels", "sizes": [len(m) for m in batch]}
        self.pool.submit(header, b"".join(batch), lambda h, p: self._named(number, h, p))

    def _named(self, number: int, header: Header, payload: bytes) -> None:
        """Plan the libraries in the order of batches, not of replies."""
        self._replies[number] = header, payload
        while self._read in self._replies:
            header, payload = self._replies.pop(self._read)
            self._read += 1
            self.libraries.resources = header["resources"]
            _, kernels = kernels_of(header["kernels"], payload)
            planned = {k.key for group in self.groups for k in group}
            new = {key: k for key, k in kernels.items() if key not in planned | set(self.found)}
            self.found.update(self.libraries.found(new))
            missing = [k for key, k in sorted(new.items()) if key not in self.found]
            if missing:
                self.compile(missing)

    def compile(self, group: Sequence[Kernel]) -> None:
        """Queue a library of these kernels; `made` has it once the pool has been drained."""
        number = len(self.groups)
        self.groups.append(list(group))

        def read(header: Header, code: bytes) -> None:
            self.made[number] = self.libraries.made(group, header, code)

        self.pool.submit(*self.libraries.request(group), read)

    def planned(self) -> None:
        """Wait until each batch that was sent has its libraries planned.

        Errors: Together, CompileFailed.
        """
        if self._failed is not None:
            raise self._failed
        self._batch = []  # too few for a library of their own
        while self._read < self._sent:
            self.pool.wait()

    def close(self) -> None:
        """End running compiles."""
        self.pool.close()


__all__ = ["BATCH_BYTES", "Stream"]

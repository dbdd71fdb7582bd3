"""Read-ahead of large tensors, for the importer that reads them one by one.

A thread reads and digests them in file order; neither holds Python's GIL.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import field

import numpy as np

from mgx_mlir.core import interrupts
from mgx_mlir.core.literals import bytes_digest
from mgx_mlir.core.records import dataclass
from mgx_mlir.frontends.files import bytes_of
from mgx_mlir.frontends.onnx.file_digest import tensor_digests

LEAST = 1 << 20  # least bytes of a tensor that is read ahead
_ROOM = 256 << 20  # most bytes that wait for the importer
_STEP = 0.05  # seconds between two checks for the end


@dataclass
class _Row:
    """A tensor's offset and size, and its data once read."""

    offset: int
    nbytes: int
    is_begun: bool = False
    array: np.ndarray | None = None
    digest: bytes = b""
    done: threading.Event = field(default_factory=threading.Event)


class ReadAhead:
    """The tensors of one open file. Use `close` before the file is closed."""

    def __init__(self, fd: int, name: str, places: Iterable[tuple[int, int]]) -> None:
        """Start to read the tensors at these extents: offset and bytes of each."""
        self._fd, self._name = fd, name
        self._rows = {offset: _Row(offset, n) for offset, n in places if n >= LEAST}
        self._known = tensor_digests(fd)
        self._changed = threading.Condition()
        self._waiting = 0  # bytes that were read and not taken yet
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="mgx-reader", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system has no thread left
            self._rows = {}

    def _run(self) -> None:
        for row in list(self._rows.values()):
            with self._changed:
                while self._waiting > _ROOM and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                if row.offset not in self._rows:
                    continue  # the importer has read it already
                row.is_begun = True
                self._waiting += row.nbytes
            try:
                array = bytes_of(self._fd, row.offset, row.nbytes, "a tensor", self._name)
                known = self._known.get((row.offset, row.nbytes))
                row.digest = known or bytes_digest(array)
                row.array = array
            except Exception:
                pass  # the importer reads it again, and reports the error
            finally:
                row.done.set()

    def take(self, offset: int, nbytes: int) -> tuple[np.ndarray, bytes] | None:
        """Return a tensor's bytes and digest, once; None if they were not read."""
        with self._changed:
            row = self._rows.pop(offset, None)
        if row is None or not row.is_begun:
            return None
        while not row.done.wait(_STEP):
            interrupts.check()
        with self._changed:
            self._waiting -= row.nbytes
            self._changed.notify()
        return None if row.array is None or row.nbytes != nbytes else (row.array, row.digest)

    def close(self) -> None:
        """Stop reading."""
        with self._changed:
            self._is_closed = True
            self._rows = {}
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()


__all__ = ["LEAST", "ReadAhead"]

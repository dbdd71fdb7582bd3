"""MgxPredictor: a class for `ray.data.Dataset.map_batches`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.integrations.ray.artefacts import Artefact, shared_program
from mgx_mlir.programs.signature import Port


class MgxPredictor:
    """Run a model on batches of rows, each a mapping of arrays by column.

    `ds.map_batches(MgxPredictor, fn_constructor_args=["m.onnx"], compute=ActorPoolStrategy(size=2),
    batch_size=64)`. The model (a path that every node has, or bytes) is compiled once for the
    cluster. `columns` maps inputs to columns. The default is the same name; a model with one input
    takes the only column. `keep` names columns that the result keeps. Batches may have any number
    of rows: if the model's first dim is fixed, they run in pieces of its size, the last one padded.
    `options` are those of `mgx_mlir.compile`. Errors: MgxError; RunError if an output does not have
    one row per input row.
    """

    def __init__(
        self,
        model: bytes | str | os.PathLike[str],
        target: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        keep: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.program = shared_program(Artefact.of(model, target, options))
        self._columns, self._keep = dict(columns or {}), tuple(keep)
        signature = self.program.signature
        if signature.input_groups or signature.output_groups:
            raise UsageError("the inputs and outputs expected tensors, got sequences")
        firsts = {p.dims[0] for p in signature.given_inputs if p.dims}
        if not all(p.dims for p in signature.given_inputs) or len(firsts) != 1:
            raise UsageError("the inputs expected rows: a first dim that all of them share")
        first = firsts.pop()
        self._size = first if first >= 0 else None
        if isinstance(self.program, IreeProgram):
            self.program.load()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs of a batch by name, and the kept columns."""
        feed = {p.name: self._array(p, batch) for p in self.program.signature.given_inputs}
        rows = len(next(iter(feed.values())))
        found = {n: batch[n] for n in self._keep}
        names = self.program.output_names
        for name, array in zip(names, self._run(feed, rows), strict=True):
            if array.shape[:1] != (rows,):
                raise RunError(f"output '{name}' expected {rows} rows, got {list(array.shape)}")
            found[name] = array
        return found

    def _run(self, feed: Mapping[str, np.ndarray], rows: int) -> list[np.ndarray]:
        size = self._size
        if size is None or size == rows:
            return self.program.run(dict(feed))
        if size == 0:
            raise UsageError("the model's inputs have 0 rows")
        pieces: list[list[np.ndarray]] = []
        for begin in range(0, rows, size) if rows else [0]:
            piece = {n: _filled(a[begin : begin + size], size) for n, a in feed.items()}
            pieces.append(self.program.run(piece))
        return [np.concatenate(parts)[:rows] for parts in zip(*pieces, strict=True)]

    def _array(self, port: Port, batch: Mapping[str, Any]) -> np.ndarray:
        """Return the column of an input. Errors: RunError that names the columns."""
        column = self._columns.get(port.name, port.name)
        if column not in batch and not self._columns and len(self.program.input_names) == 1:
            rest = [n for n in batch if n not in self._keep]
            column = rest[0] if len(rest) == 1 else column
        if column not in batch:
            listed = ", ".join(map(str, batch)) or "none"
            raise RunError(
                f"input '{port.name}' has no column '{column}', the columns are {listed}"
            )
        array = np.asarray(batch[column])
        if array.dtype == object and not port.text:
            try:
                array = np.stack(list(array)) if array.size else np.zeros(0, np.float32)
            except ValueError:
                raise RunError(f"column '{column}' expected rows of one shape") from None
        if not array.size and array.ndim < len(port.dims):
            dims = [0, *(max(d, 0) for d in port.dims[1:])]
            array = np.zeros(dims, array.dtype)
        return array


def _filled(rows: np.ndarray, size: int) -> np.ndarray:
    """Return `size` rows: the given rows, padded with copies of the last one, or with zeros."""
    missing = size - len(rows)
    if not missing:
        return rows
    more = np.repeat(rows[-1:], missing, 0) if len(rows) else np.zeros((missing, *rows.shape[1:]),
                                                                      rows.dtype)  # fmt: skip
    return np.concatenate([rows, more])

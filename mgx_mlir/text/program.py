"""A compiled decoder: one program for prompts and steps, with caches in the memory of its slots."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import FileError

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram


@dataclass(frozen=True)
class CacheShape:
    """Caches of a model: a pair for each layer, {slots, heads, rows, size}."""

    layers: int
    heads: int
    size: int

    @staticmethod
    def of_json(text: str | bytes) -> CacheShape:
        """Read a row that `to_json` wrote. Raises FileError."""
        try:
            row = json.loads(text)
            return CacheShape(int(row["layers"]), int(row["heads"]), int(row["size"]))
        except (ValueError, KeyError, TypeError) as e:
            raise FileError(f"not the shape of a model's caches: {e}") from e

    def to_json(self) -> str:
        """Return a text for `of_json`."""
        return json.dumps(asdict(self))


class ProgramDecoder:
    """A Decoder over a program of `graph`'s form. Not safe under threads: an engine's lock is.

    Caches are f32, and take memory where rows were written.
    """

    def __init__(self, program: CompiledProgram, shape: CacheShape, slots: int, rows: int) -> None:
        self.program, self.shape, self.slots, self.rows = program, shape, slots, rows
        names = program.input_names
        dims = (slots, shape.heads, rows, shape.size)
        self._inputs, past = names[:5], names[5:]
        self._caches = {name: np.zeros(dims, np.float32) for name in past}
        self._outputs = dict(zip(past, program.output_names[1:], strict=True))

    @property
    def row_bytes(self) -> int:
        """Return the bytes that a token takes in the caches."""
        return 2 * self.shape.layers * self.shape.heads * self.shape.size * 4

    def prefill(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[np.float32]:
        """Write tokens at rows from `start` on, and return the logits {vocabulary} behind them."""
        ids = np.asarray(tokens, np.int64)[None]
        keep = np.array([ids.shape[1] - 1])
        return self._run(ids, np.array([start]), keep, slot)[0, 0]

    def scores(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[np.float32]:
        """Write tokens as `prefill` does; return the logits {tokens, vocabulary} behind each."""
        ids = np.asarray(tokens, np.int64)[None]
        return self._run(ids, np.array([start]), np.arange(ids.shape[1]), slot)[0]

    def decode(self, tokens: Sequence[int], starts: Sequence[int]) -> NDArray[np.float32]:
        """Write a token for each of the first slots; return logits {sequences, vocabulary}."""
        ids = np.asarray(tokens, np.int64)[:, None]
        return self._run(ids, np.asarray(starts), np.zeros(1, np.int64), 0)[:, 0]

    def _run(
        self, ids: NDArray[Any], starts: NDArray[Any], keep: NDArray[Any], slot: int
    ) -> NDArray[np.float32]:
        count, length = ids.shape
        ends = starts + length
        caches = {name: c[slot : slot + count] for name, c in self._caches.items()}
        values = (
            ids, starts[:, None] + np.arange(length), (ends - 1).astype(np.int32),
            np.array([ends.max()], np.int32), keep,
        )  # fmt: skip
        given: dict[str, Any] = dict(zip(self._inputs, values, strict=True))
        out = {self._outputs[name]: cache for name, cache in caches.items()}
        return np.asarray(self.program.run({**given, **caches}, out=out)[0])

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        for cache in self._caches.values():
            kept = cache[a, :, :rows].copy()
            cache[a, :, :rows] = cache[b, :, :rows]
            cache[b, :, :rows] = kept

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        for cache in self._caches.values():
            cache[target, :, :rows] = cache[source, :, :rows]


def cached(
    key: str | None, options: Mapping[str, Any]
) -> tuple[CompiledProgram, CacheShape] | None:
    """Return a program that `keep` kept under a key, None where there is none that still holds."""
    # start-up: what a compile needs is loaded by it alone
    from mgx_mlir.compiler.options import CompileOptions
    from mgx_mlir.compiler.program_cache import find_program
    from mgx_mlir.targets.cache import default_cache

    store = default_cache()
    if store is None or key is None:
        return None
    try:
        row = json.loads((store.root / "text" / key).read_bytes())
        shape = CacheShape.of_json(json.dumps(row["shape"]))
        made = find_program(str(row["program"]), CompileOptions.of(None, None, options), b"")
    except (OSError, ValueError, KeyError, TypeError, FileError):
        return None
    return None if made is None else (made, shape)


def keep(key: str | None, program_key: str | None, shape: CacheShape) -> None:
    """Name the cached program that a checkpoint became; a full disk costs the entry alone."""
    from mgx_mlir.targets.cache import default_cache

    store = default_cache()
    if store is None or key is None or program_key is None or store.standing != "own":
        return
    path = store.root / "text" / key
    row = json.dumps({"program": program_key, "shape": asdict(shape)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f"{key}.{os.getpid()}")
        made.write_text(row)
        made.replace(path)
    except OSError:
        return

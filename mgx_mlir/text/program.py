"""A compiled decoder: one program for prompts and steps, with a cache for each slot."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core import dtypes, forks, interrupts
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.huge_pages import HugePages, release_pages
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.text.slots import HostSlots, SlotDecoder, side_by_side, slots_of

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram
    from mgx_mlir.compiler.options import CompileOptions

# weights of loaded programs by the programs' keys and their own names: sessions of one model share
_HELD: WeakValueDictionary[tuple[str, str], NDArray[Any]] = WeakValueDictionary()
_HELD_LOCK = forks.lock()
_BATCH = 8  # sequences of a step of known sizes, beside one and all


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


class Step:
    """A decode step with bound arguments: equally many tokens for each of some sequences."""

    def __init__(self, held: HostSlots, names: Sequence[str], count: int, length: int) -> None:
        dims = (count, length)
        self._ids, self._places = (aligned_empty(dims, np.dtype(np.int64)) for _ in range(2))
        self._last, self._total = (aligned_empty((n,), np.dtype(np.int32)) for n in (count, 1))
        keep = aligned_empty((length,), np.dtype(np.int64))
        for array in (self._ids, self._places, self._last, self._total):
            array[...] = 0
        keep[...] = self._offsets = np.arange(length)
        self._starts = np.zeros((count, 1), np.int64)
        arrays = self._ids, self._places, self._last, self._total, keep
        self._call = held.bound(0, count, dict(zip(names, arrays, strict=True)))

    def __call__(
        self, tokens: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return the logits {sequences, tokens, vocabulary} after each token."""
        self._ids[...] = tokens
        self._starts[:, 0] = starts
        np.add(self._starts, self._offsets, out=self._places)
        self._last[...] = self._places[:, -1]
        self._total[0] = max(starts) + len(self._offsets)
        return self._call()[0]


class ProgramDecoder(SlotDecoder):
    """A Decoder for a program that `graph` exported. Not thread-safe; the engine's lock guards it.

    Caches are f32, or of the type that the checkpoint is loaded in.
    """

    def __init__(self, program: CompiledProgram, shape: CacheShape, slots: int, rows: int) -> None:
        self.program = program
        self._written = [0] * slots  # rows of each slot that may be valid
        names = program.input_names
        self._inputs, past = names[:5], names[5:]
        self._logits, *present = program.output_names
        pairs = dict(zip(past, present, strict=True))
        dims = slots, shape.heads, rows, shape.size
        kind = {p.name: p.dtype for p in program.signature.inputs}[past[0]]
        super().__init__(slots_of(program, pairs, dims, dtypes.from_name(kind).np))
        self._steps: dict[tuple[int, int], Step] = {}

    def write(self, slot: int, tokens: Sequence[int], start: int) -> None:
        """Write tokens at rows from `start` on; no logits are computed on a CPU."""
        if not isinstance(self.held, HostSlots):  # GPU kernels are of at least one row
            self.prefill(slot, tokens, start)
            return
        self._run(np.asarray(tokens, np.int64)[None], np.array([start]), np.arange(0), slot)

    def prefill(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[np.float32]:
        """Write tokens at rows from `start` on; return the logits {vocabulary} after the last."""
        ids = np.asarray(tokens, np.int64)[None]
        keep = np.array([ids.shape[1] - 1])
        return self._run(ids, np.array([start]), keep, slot)[0, 0]

    def prefill_together(
        self, slot: int, prompts: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> NDArray[np.float32]:
        """Write tokens of slots from `slot` on; return the logits {slots, vocabulary} after the
        last of each.
        """
        ids, last = side_by_side(prompts)
        keep, at = np.unique(last, return_inverse=True)
        logits = self._run(ids, np.asarray(starts), keep, slot, len(prompts))
        self._written[slot : slot + len(prompts)] = (np.asarray(starts) + last + 1).tolist()
        return logits[np.arange(len(prompts)), at]

    def scores(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[np.float32]:
        """Write tokens as `prefill` does; return the logits {tokens, vocabulary} after each."""
        ids = np.asarray(tokens, np.int64)[None]
        return self._run(ids, np.array([start]), np.arange(ids.shape[1]), slot)[0]

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> NDArray[np.float32]:
        """Write tokens, equally many for each of the first slots; return the logits {sequences,
        tokens, vocabulary} after each.
        """
        count, length = len(tokens), len(tokens[0])
        if not (isinstance(self.held, HostSlots) and self.held.binds):
            ids, at = np.asarray(tokens), np.asarray(starts)
            if length == 1 and not isinstance(self.held, HostSlots):
                ids, at = self._filled(ids, at)
            return self._run(ids, at, np.arange(length), 0, count)[:count]
        step = self._steps.get((count, length))
        if step is None:
            step = self._steps[count, length] = Step(self.held, self._inputs, count, length)
        return step(tokens, starts)

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        super().swap(a, b, rows)
        self._written[a], self._written[b] = self._written[b], self._written[a]

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        super().copy(source, target, rows)
        self._written[target] = rows

    def _filled(self, ids: NDArray[Any], starts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return a step's tokens and starts with those of unused sequences, for a function of known
        sizes. An unused sequence writes behind its slot's rows; none where a slot is full.
        """
        count = len(ids)
        whole = next((n for n in batch_sizes(self.slots) if n >= count), count)
        added = self._written[count:whole]
        if not added or max(added) >= self.rows:
            return ids, starts
        return np.concatenate([ids, np.zeros((len(added), 1), ids.dtype)]), np.append(starts, added)

    def _run(
        self, ids: NDArray[Any], starts: NDArray[Any], keep: NDArray[Any], slot: int, used: int = 1
    ) -> NDArray[np.float32]:
        count, length = ids.shape
        ends = starts + length
        self._written[slot : slot + used] = ends[:used].tolist()
        values = (
            ids, starts[:, None] + np.arange(length), (ends - 1).astype(np.int32),
            np.array([ends.max()], np.int32), keep,
        )  # fmt: skip
        given: dict[str, Any] = dict(zip(self._inputs, values, strict=True))
        return self.held.run(given, slot, count, self._logits)


def batch_sizes(slots: int) -> tuple[int, ...]:
    """Return the numbers of sequences for which a GPU's step is compiled with known sizes."""
    return (1,) if slots == 1 else (1, slots) if slots <= _BATCH else (1, _BATCH, slots)


def cached(key: str | None, options: CompileOptions) -> tuple[CompiledProgram, CacheShape] | None:
    """Return the program that `keep` stored under a key; None without a valid one."""
    # not imported at start-up: only a compile needs these
    from mgx_mlir.compiler.program_cache import find_program
    from mgx_mlir.targets.cache import MODELS, default_cache

    store = default_cache()
    if store is None or key is None:
        return None
    try:
        path = store.root / MODELS / key
        row = json.loads(path.read_bytes())
        with contextlib.suppress(OSError):  # a read-only cache
            os.utime(path)
        shape = CacheShape.of_json(json.dumps(row["shape"]))
        made = find_program(str(row["program"]), options, b"")
    except (OSError, ValueError, KeyError, TypeError, FileError):
        return None
    if made is None:
        return None
    made.run_by(options)
    made.params = _in_large_pages(str(row["program"]), made.params)
    return made, shape


def _in_large_pages(key: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return copies of a program's weights, which other programs of its key use, too.

    A step reads all weights: docs/quantization.md. No array of the file's mapping stays, and its
    pages are released one array after the other: they would be held beside the copies.
    """
    found = dict[str, NDArray[Any]]()
    with interrupts.waiting(_HELD_LOCK):
        pages = HugePages(a.nbytes for n, a in arrays.items() if _HELD.get((key, n)) is None)
        for name, array in arrays.items():
            held = _HELD.get((key, name))
            if held is None:
                held = _HELD[key, name] = pages.placed(array)
                release_pages(array)
            found[name] = held
    return found


def keep(key: str | None, program_key: str | None, shape: CacheShape) -> None:
    """Store the cache entry that maps a checkpoint to its program; a full disk loses only the
    entry.
    """
    from mgx_mlir.targets.cache import MODELS, default_cache

    store = default_cache()
    if store is None or key is None or program_key is None or store.standing != "own":
        return
    path = store.root / MODELS / key
    row = json.dumps({"program": program_key, "shape": asdict(shape)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f"{key}.{os.getpid()}")
        made.write_text(row)
        made.replace(path)
    except OSError:
        return

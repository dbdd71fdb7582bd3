"""Caches of a decoder, a slot for each sequence, and calls that update them.

Caches are {slots, heads, rows, size}: in host memory for a CPU, in a GPU's memory for its programs.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import RunError, UsageError

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram
    from mgx_mlir.compiler.iree_program import IreeProgram
    from mgx_mlir.runtime.bound_calls import BoundCall
    from mgx_mlir.runtime.device_memory import DeviceTensor
    from mgx_mlir.runtime.gpu_updates import Updates

Dims = tuple[int, int, int, int]
Heads = Callable[[int], list[int]]
_FEWER = "load with fewer slots, or a smaller max_length"


class Slots(Protocol):
    """Caches by the name of their input. pairs: the result of each that has its new rows."""

    slots: int
    rows: int
    chunk: int  # tokens of prompts that a call computes
    padding: int  # see Decoder

    def run(
        self, values: Mapping[str, NDArray[Any]], slot: int, count: int, result: str
    ) -> NDArray[Any]:
        """Call the program with other inputs' `values` and the caches of `count` slots from `slot`
        on, which get new rows; return the result of that name.
        """
        ...

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        ...

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        ...


class HostSlots:
    """Caches in host memory, which is committed when rows are written."""

    chunk = 128
    # SmolLM2-135M by 4-bit weights, a thread of Zen 5: a call takes 3.6 ms, and 0.57 ms a token
    padding = 6

    def __init__(
        self,
        program: CompiledProgram,
        pairs: Mapping[str, str],
        dims: Dims,
        dtype: np.dtype[Any],
    ) -> None:
        self.slots, self.rows = dims[0], dims[2]
        self._program, self._pairs = program, dict(pairs)
        self._results = [n for n in program.output_names if n not in set(pairs.values())]
        self.caches = {name: _zeros(dims, dtype) for name in pairs}
        self._calls: dict[tuple[int, int], BoundCall] = {}
        # calls can be bound if the program has code, and copies no cache
        self.binds = program.target == "cpu" and _updated(program) == self._pairs

    def run(
        self, values: Mapping[str, NDArray[Any]], slot: int, count: int, result: str
    ) -> NDArray[Any]:
        """Call the program; see Slots."""
        if self.binds:
            call = self._calls.get((slot, count))
            if call is None:
                call = self._calls[slot, count] = self.bound(slot, count, {})
            given = [values[n] for n in self._program.input_names if n not in self.caches]
            return call(given)[self._results.index(result)]
        own = {name: c[slot : slot + count] for name, c in self.caches.items()}
        out = {self._pairs[name]: cache for name, cache in own.items()}
        found = self._program.run({**values, **own}, out=out)
        return np.asarray(found[self._program.output_names.index(result)])

    def bound(self, slot: int, count: int, values: Mapping[str, NDArray[Any]]) -> BoundCall:
        """Return a call on the caches of `count` slots from `slot` on, whose results are those
        that are no caches. values: other inputs that stay.
        """
        assert self.binds
        # not imported at start-up: only CPU programs need the CPU runtime
        from mgx_mlir.runtime.bound_calls import BoundCall

        program = cast("IreeProgram", self._program)  # a CPU's program is IREE's
        signature = program.signature
        stays = {**values, **{name: c[slot : slot + count] for name, c in self.caches.items()}}
        arrays = [stays.get(name) for name in program.input_names]
        caches = {k: a for i, k in signature.in_place if (a := arrays[i]) is not None}
        return BoundCall(program.load(), arrays, caches, signature.value_check())

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        for cache in self.caches.values():
            kept = cache[a, :, :rows].copy()
            cache[a, :, :rows] = cache[b, :, :rows]
            cache[b, :, :rows] = kept

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        for cache in self.caches.values():
            cache[target, :, :rows] = cache[source, :, :rows]


class DeviceSlots:
    """Caches in a GPU's memory, all of it allocated at once; they never leave it."""

    chunk = 512  # most of a call's time is launches
    padding = 64

    def __init__(
        self,
        program: IreeProgram,
        updates: Updates,
        pairs: Mapping[str, str],
        dims: Dims,
        dtype: np.dtype[Any],
    ) -> None:
        self.slots, self.rows, self._updates = dims[0], dims[2], updates
        self._program, self._dims, self._dtype = program, dims, dtypes.from_numpy(dtype)
        self._results = [n for n in program.output_names if n not in set(pairs.values())]
        self._check = program.signature.value_check()
        # a CPU needs no device's memory
        from mgx_mlir.runtime.device_memory import DeviceTensor

        self._parts: dict[tuple[int, int], dict[str, DeviceTensor]] = {}
        device = program.load().device
        try:
            self._caches = {n: DeviceTensor.zeros(device, self._dtype, dims) for n in pairs}
        except RunError as e:
            size = len(pairs) * math.prod(dims) * dtype.itemsize
            raise UsageError(
                f"{device} has no memory for {dims[0]} slots of {dims[2]} tokens, which take "
                f"{size / 1e9:.1f} GB: {e.message}", notes=[_FEWER],
            ) from e  # fmt: skip

    def run(
        self, values: Mapping[str, NDArray[Any]], slot: int, count: int, result: str
    ) -> NDArray[Any]:
        """Call the program; see Slots."""
        given = {**values, **self._part(slot, count)}
        args = [given[name] for name in self._program.input_names]
        if self._check is not None:
            self._check([a if isinstance(a, np.ndarray) else a.shadow for a in args])
        return self._updates.run(args)[self._results.index(result)]

    def _part(self, slot: int, count: int) -> dict[str, DeviceTensor]:
        """Return the caches of slots that follow each other, by name."""
        # a CPU needs no device's memory
        from mgx_mlir.runtime.device_memory import at_address

        found = self._parts.get((slot, count))
        if found is None:
            dims, step = (count, *self._dims[1:]), math.prod(self._dims[1:]) * self._dtype.size
            found = self._parts[slot, count] = {
                name: at_address(c.device, c.address() + slot * step, self._dtype, dims)
                for name, c in self._caches.items()
            }
        return found

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        # a CPU needs no device's memory
        from mgx_mlir.runtime.device_memory import DeviceTensor

        device = self._program.load().device
        kept = DeviceTensor.empty(device, self._dtype, (rows, self._dims[3]))
        held = kept.address()
        with self._copies(rows) as (copy, heads):
            for first, second in zip(heads(a), heads(b), strict=True):
                copy(held, first)
                copy(first, second)
                copy(second, held)

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        with self._copies(rows) as (copy, heads):
            for old, new in zip(heads(source), heads(target), strict=True):
                copy(new, old)

    @contextlib.contextmanager
    def _copies(self, rows: int) -> Iterator[tuple[Callable[[int, int], None], Heads]]:
        """Yield a function that copies `rows` rows from one address to another, and one for the
        addresses of a slot's heads in all caches. Copies are made in order, at the end.
        """
        # a CPU needs no device's memory
        from mgx_mlir.runtime.gpu_streams import Copies

        copies, row = Copies(self._program.load().device), self._dims[3] * self._dtype.size

        def heads(slot: int) -> list[int]:
            _, count, each, _ = self._dims
            return [
                c.address() + (slot * count + head) * each * row
                for c in self._caches.values()
                for head in range(count)
            ]

        yield lambda to, source: copies.within(to, source, rows * row), heads
        copies.finish()


def slots_of(
    program: CompiledProgram, pairs: Mapping[str, str], dims: Dims, dtype: np.dtype[Any]
) -> Slots:
    """Return caches of a program: in a GPU's memory where it updates all of them in place.

    pairs: the result with the new rows of each cache's input. Raises UsageError if there is too
    little memory.
    """
    if program.target == "gpu" and _updated(program) == dict(pairs) and program.limits is None:
        made = cast("IreeProgram", program)  # a GPU's program is IREE's
        updates = made.load().updates
        if updates is not None:
            return DeviceSlots(made, updates, pairs, dims, dtype)
    return HostSlots(program, pairs, dims, dtype)


def side_by_side(
    prompts: Sequence[Sequence[int]],
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return prompts {prompts, longest}, filled up with 0, and the index of the last token of
    each.
    """
    last = np.array([len(p) - 1 for p in prompts])
    ids = np.zeros((len(prompts), int(last.max()) + 1), np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[: len(prompt)] = prompt
    return ids, last


def _updated(program: CompiledProgram) -> dict[str, str]:
    """Return the results that a program writes in the memory of inputs, by the input's name."""
    inputs, outputs = program.input_names, program.output_names
    return {inputs[i]: outputs[k] for i, k in program.signature.in_place}


class SlotDecoder:
    """The part of a Decoder that holds the caches."""

    def __init__(self, held: Slots) -> None:
        self.held, self.slots, self.rows = held, held.slots, held.rows
        self.chunk, self.padding = held.chunk, held.padding

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        self.held.swap(a, b, rows)

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        self.held.copy(source, target, rows)


def _zeros(dims: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return aligned zeros whose memory is committed by small pages, on write.

    Each head of each slot has its own rows, so a large page would commit 2 MB for one token.
    """
    size = dtype.itemsize * math.prod(dims)
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:  # Windows
            held = mmap.mmap(-1, size)
    except (OSError, OverflowError) as e:
        raise UsageError(
            f"there is no memory for {dims[0]} slots of {dims[2]} tokens: a cache of a layer takes "
            f"{size / 1e9:.1f} GB", notes=[_FEWER],
        ) from e  # fmt: skip
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without large pages
            held.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(held, dtype).reshape(dims)

"""One model on several GPUs: each runs the whole model on its part of the rows of a batch."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mgx_mlir.compiler.architectures import of_device
from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.programs.signature import Port


@interrupts.held
def data_parallel(
    model: Any, devices: Sequence[int], *, whole: Sequence[str] = (), **options: Any
) -> ParallelProgram:
    """Compile a model once, and load it on several GPUs.

    `devices` are numbers as `device_id` is; `options` are those of `compile`. `whole` names inputs
    that each device gets as they are. Errors: UsageError; those of `compile`.
    """
    if not devices or len(set(devices)) != len(devices):
        raise UsageError(f"expected different devices, got {list(devices)}")
    given = [o for o in ("target", "device_id") if o in options]
    if given:
        raise UsageError(f"data_parallel is for gpu and takes devices, it has no '{given[0]}'")
    if options.get("arch") is None:
        archs = {of_device(d, emulate=bool(options.get("emulate"))) for d in devices}
        known = sorted(a for a in archs if a is not None)
        options["arch"] = known or None
    first = compile_program(model, "gpu", device_id=devices[0], **options)
    programs = [first]
    for device in devices[1:]:
        program = copy.deepcopy(first)  # the copies share code and weights
        program.device_id = device
        programs.append(program)
    return ParallelProgram(programs, whole)


class ParallelProgram:
    """Programs of one model, each on another GPU.

    `run` is thread-safe. Rows of inputs, along their first dim, are distributed over the devices,
    and rows of results concatenated. So the model must compute each row independently. With dynamic
    dims each device gets an
    equal part. A model of static batch n takes any multiple of n rows. Inputs whose first dim
    is not that of the first input, and those in `whole`, go to each device as they are. Errors:
    UsageError for results without rows.
    """

    def __init__(self, programs: Sequence[CompiledProgram], whole: Sequence[str] = ()) -> None:
        self.programs = list(programs)
        self.signature = self.programs[0].signature
        names = self.signature.input_names
        unknown = sorted(set(whole) - set(names))
        if unknown:
            raise UsageError(f"'whole': unknown inputs: {', '.join(unknown)}")
        rows = [p for p in self.signature.inputs if p.name not in whole and p.dims]
        if not rows:
            raise UsageError("no input has rows that devices could share")
        self._batch, key = rows[0].dims[0], _row_key(rows[0])
        self.split = [p.name for p in rows if _row_key(p) == key]
        lone = [p for p in self.signature.outputs if not p.dims or p.dims[0] != self._batch]
        if lone or self.signature.output_groups or self.signature.input_groups:
            name = lone[0].name if lone else "a sequence"
            raise UsageError(
                f"the results of several devices cannot be concatenated: {name} has no batch dim"
            )

    @property
    def devices(self) -> list[int]:
        """The numbers of the devices."""
        return [p.device_id for p in self.programs]

    def run(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> list[Any]:
        """Run on numpy arrays by input name; the outputs in order. Raises RunError."""
        given = {**(inputs or {}), **named}
        missing = [n for n in self.split if n not in given]
        if missing:
            raise RunError(f"missing inputs: {', '.join(missing)}")
        arrays = {n: np.asarray(given[n]) for n in self.split}
        count = self._rows(arrays)
        shares: list[list[tuple[int, int]]] = [[] for _ in self.programs]
        for number, part in enumerate(self._parts(count)):
            shares[number % len(shares)].append(part)

        def work(program: CompiledProgram, parts: Sequence[tuple[int, int]]) -> list[list[Any]]:
            return [
                program.run({**given, **{n: a[begin:end] for n, a in arrays.items()}})
                for begin, end in parts
            ]

        busy = [(p, s) for p, s in zip(self.programs, shares, strict=True) if s]
        with ThreadPoolExecutor(len(busy)) as pool:
            found = list(pool.map(lambda each: work(*each), busy))
        by_start = {
            part[0]: results
            for (_, parts), made in zip(busy, found, strict=True)
            for part, results in zip(parts, made, strict=True)
        }
        pieces = [by_start[begin] for begin in sorted(by_start)]
        return [np.concatenate(column) for column in zip(*pieces, strict=True)]

    __call__ = run

    def close(self) -> None:
        """Free the code, the weights and the devices' memory."""
        for program in self.programs:
            program.close()

    def _rows(self, arrays: Mapping[str, np.ndarray]) -> int:
        counts = {n: a.shape[0] if a.ndim else 0 for n, a in arrays.items()}
        found = set(counts.values())
        if len(found) != 1:
            listed = ", ".join(f"{n} {c}" for n, c in counts.items())
            raise RunError(f"expected inputs of equal numbers of rows, got {listed}")
        count = found.pop()
        if count == 0 or (self._batch > 0 and count % self._batch):
            wanted = f"a multiple of {self._batch} rows" if self._batch > 0 else "at least 1 row"
            raise RunError(f"expected {wanted}, got {count}")
        return count

    def _parts(self, count: int) -> list[tuple[int, int]]:
        """Return the ranges of rows of each call: one batch, or an equal part for each device."""
        if self._batch > 0:
            return [(n, n + self._batch) for n in range(0, count, self._batch)]
        parts = min(len(self.programs), count)
        edges = [count * n // parts for n in range(parts + 1)]
        return list(itertools.pairwise(edges))


def _row_key(port: Port) -> tuple[int, str | None]:
    """Return a key that inputs with the same rows share: symbol or size of the first dim."""
    symbol = port.ranges[0].symbol if port.ranges else None
    return port.dims[0], symbol

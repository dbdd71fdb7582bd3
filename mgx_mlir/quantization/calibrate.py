"""Calibration: run a program on samples, and observe the values to be quantised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.compiler.compile import compile
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.taps import with_results
from mgx_mlir.quantization.bodies import lifted
from mgx_mlir.quantization.ranges import Observer
from mgx_mlir.quantization.samples import Sample, samples
from mgx_mlir.quantization.sites import Place, Site, at_places

Progress = Callable[[int], None]  # called with the number of finished samples


@dataclass
class Calibration:
    """Observations of samples: an observer for each value, and the program's own results."""

    observers: dict[Place, Observer]
    samples: list[Sample] = field(default_factory=list)
    outputs: list[list[np.ndarray]] = field(default_factory=list)


def calibrate(
    program: ProgramIR,
    sites: Sequence[Site],
    data: object,
    *,
    target: str = "cpu",
    progress: Progress | None = None,
    most: int | None = None,
    keep: int = 16,
) -> Calibration:
    """Run the program on samples of `data`, and observe the operands of all sites.

    target: "cpu" or "ref", on which the program runs with these operands as results. most: the
    number of samples to read. keep: the number of samples and results to store for later
    comparisons. Errors: UsageError without a sample, and those of reading and running.
    """
    wanted: dict[Place, set[int]] = {}
    for site in sites:
        for place in site.values:
            wanted.setdefault(place, set())
        if site.weights is not None:
            wanted[site.values[0]].add(site.channel_axis)
    found = Calibration({p: Observer(frozenset(axes)) for p, axes in wanted.items()})
    order = list(wanted)

    def see(sample: Sample, values: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> None:
        for place, array in zip(order, values, strict=True):
            found.observers[place].add(array)
        if len(found.samples) < keep:
            found.samples.append(sample)
            found.outputs.append([np.array(a) for a in own])

    watch(program, order, data, see, target=target, progress=progress, most=most)
    return found


def watch(
    program: ProgramIR,
    order: Sequence[Place],
    data: object,
    see: Callable[[Sample, Sequence[np.ndarray], Sequence[np.ndarray]], None],
    *,
    target: str,
    progress: Progress | None,
    most: int | None,
) -> None:
    """Run the program on samples, and pass each sample's values at these indices, with its results.

    Errors: as `calibrate`.
    """
    ranks: list[int] = []
    compiled = compile(with_results(program, lambda b: _tapped(b, order, ranks)), target)
    count = 0
    own = len(compiled.signature.outputs) - len(order)
    for sample in samples(data, compiled.signature.inputs):
        interrupts.check()
        if most is not None and count >= most:
            break
        results = [np.asarray(a) for a in compiled.execute(compiled.check_inputs(sample))]
        values = [_of_rank(a, rank) for a, rank in zip(results[own:], ranks, strict=True)]
        see(sample, values, results[:own])
        count += 1
        if progress is not None:
            progress(count)
    if not count:
        raise UsageError("the calibration data has no sample")


def _tapped(
    block: ir.Block, places: Sequence[Place], ranks: list[int]
) -> list[tuple[str, ir.Value]]:
    """Name the values at indices for `with_results`; add their ranks to `ranks`."""
    values = at_places(block, places)
    ranks += [TensorType.of(v).rank for v in values]
    return [(f"seen_{i}", v) for i, v in enumerate(lifted(block, values))]


def _of_rank(array: np.ndarray, rank: int) -> np.ndarray:
    """Merge a loop's iterations, which are additional leading axes, into the first axis."""
    more = array.ndim - rank
    if not more:
        return array
    rows = math.prod(array.shape[: more + 1])
    return array.reshape(rows, *array.shape[more + 1 :])


def outputs_of(program: ProgramIR, target: str, given: Sequence[Sample]) -> list[list[np.ndarray]]:
    """Return the results of a program on samples."""
    compiled: Any = compile(program, target)
    return [list(map(np.asarray, compiled.run(dict(s)))) for s in given]

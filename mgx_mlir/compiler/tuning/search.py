"""exhaustive_tune: a search over a target's tunable choices, by measured time.

Each choice is compared with the best so far, in interleaved calls, and kept if it is faster.
Results are written to the tuning file, which later compiles use.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.tuning.cost_models import race
from mgx_mlir.compiler.tuning.solutions import ALTERNATIVES, Tuning, keep, tuning_file
from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.errors import CompileError, UsageError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.signature import Port, Signature
from mgx_mlir.rewrite.switches import flag, integer

log = logging.getLogger(__name__)

SECONDS = 0.5  # spent on calling each side of a comparison
MARGIN = 0.02  # share by which a choice must be faster: less is noise

Inputs = Callable[[Signature], Sequence[np.ndarray]]
Compile = Callable[[Tuning], IreeProgram]


@dataclass
class Search:
    """Results of a search: milliseconds of a call by choice, None where it did not compile."""

    problem: Mapping[str, Any]
    tried: list[tuple[Tuning, float | None]] = field(default_factory=list)
    best: Tuning = field(default_factory=Tuning)
    seconds: float = 0.0
    path: Path | None = None
    skipped: str = ""

    def lines(self) -> list[str]:
        """Describe the search, one line for each choice."""
        if self.skipped:
            return [f"Tuning: {self.skipped}"]
        out = [f"Tuning: {len(self.tried)} choices searched in {self.seconds:.1f} s"]
        for tuning, ms in self.tried:
            took = "not compiled" if ms is None else f"{ms:.4g} ms"
            out.append(f"  {tuning}: {took}{' (best)' if tuning == self.best else ''}")
        return [*out, f"  kept in {self.path}"]


def search(
    problem: Mapping[str, Any],
    target: str,
    compile_with: Compile,
    *,
    threads: int | None = None,
    inputs: Inputs | None = None,
) -> tuple[IreeProgram, Search]:
    """Find the fastest compiled program; return it and the choices tried.

    `compile_with` compiles under a choice. `inputs` makes the inputs of the calls (default: random
    numbers, at the first optimal or the smallest size of each dim). MIGRAPHX_MLIR_TUNE_LIMIT bounds
    the choices, MIGRAPHX_SKIP_BENCHMARKING takes the first one, MIGRAPHX_BENCHMARKING_NRUNS sets
    the calls of each.

    Errors: UsageError where nothing can be tuned.
    """
    alternatives = ALTERNATIVES.get(target)
    if alternatives is None:
        raise UsageError(f"nothing can be tuned for {target}: it interprets each operator")
    found = Search(problem)
    start = time.perf_counter()
    best = compile_with(found.best)
    if flag("MIGRAPHX_SKIP_BENCHMARKING"):
        found.skipped = "using the default: MIGRAPHX_SKIP_BENCHMARKING is set"
        return best, found
    arrays = list((inputs or _drawn)(best.signature))
    limit = integer("MIGRAPHX_MLIR_TUNE_LIMIT", len(alternatives) + 1)
    for name, value in alternatives[: max(limit - 1, 0)]:
        interrupts.check()
        if name == "threads" and (threads is not None or available_cpus() == 1):
            continue
        choice = replace(found.best, **{name: value})
        try:
            other = compile_with(choice)
        except CompileError as e:
            log.info("tuning: %s does not compile: %s", choice, e.message)
            found.tried.append((choice, None))
            continue
        mine, its = _race(best, other, arrays)
        if not found.tried:
            found.tried.append((found.best, mine))
        found.tried.append((choice, its))
        if flag("MIGRAPHX_TRACE_BENCHMARKING"):
            print(f"tuning: {found.best} {mine:.4g} ms, {choice} {its:.4g} ms", file=sys.stderr)
        if its < mine * (1 - MARGIN):
            best, found.best = other, choice
    found.seconds = time.perf_counter() - start
    found.path = keep(problem, found.best)
    return best, found


def _race(a: IreeProgram, b: IreeProgram, arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the milliseconds of a call of two programs, medians of interleaved calls."""
    runs = integer("MIGRAPHX_BENCHMARKING_NRUNS", 0)
    calls = [lambda p=p: p.execute(arrays) for p in (a, b)]
    mine, its = race(calls, SECONDS, time.perf_counter, runs)
    return mine * 1e3, its * 1e3


def _drawn(signature: Signature) -> list[np.ndarray]:
    """Draw inputs that any program accepts: random floats, and integers 1."""
    sizes: dict[str, int] = {}
    rng = np.random.default_rng(0)
    out = []
    for port in signature.inputs:
        shape = [_size(port, i, sizes) for i in range(len(port.dims))]
        dtype = dtypes.from_name(port.dtype)
        values = rng.uniform(-1, 1, shape) if dtype.is_float else np.ones(shape)
        out.append(np.asarray(values).astype(dtype.np))
    return out


def _size(port: Port, i: int, sizes: dict[str, int]) -> int:
    if port.dims[i] >= 0:
        return port.dims[i]
    r = port.ranges[i]
    size = r.optimals[0] if r.optimals else max(r.min, 1)
    return sizes.setdefault(r.symbol, size) if r.symbol else size


def describe(tuning: Tuning) -> str:
    """Return the line about a solution found in the tuning file."""
    return f"Tuning: {tuning}, from {os.fspath(tuning_file())}"


def describe_products(count: int) -> list[str]:
    """Return the lines about matmuls in the tuning file."""
    if not count:
        return []
    return [f"Tuning: {count} known matmuls from {tuning_file()} apply where the program has them"]


__all__ = ["Search", "describe", "describe_products", "search"]

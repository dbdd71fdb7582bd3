"""Times of a compiled program: whole calls, kernels, and the lines that report them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.printers.listing import Instruction, Listing, Numbering, list_program

# words of a launch's name that the backend gives to what it makes of these operators
_FAMILIES = (
    (("convolution", "quant_convolution", "convolution_backwards"), ("conv", "matmul", "dot")),
    (("dot", "quant_dot"), ("matmul", "matvec", "vecmat", "mmt4d", "dot", "contract", "reduction")),
)
_ENCODING = "_encoding_"  # launches that only pack operands for the ones after them


@dataclass(frozen=True)
class Calls:
    """Milliseconds of each timed call, sorted."""

    times: tuple[float, ...]

    @property
    def total(self) -> float:
        """The mean without the quickest and slowest quarter."""
        return middle_mean(self.times)

    def percentile(self, share: float) -> float:
        return self.times[math.floor(share * (len(self.times) - 1))]


def time_calls(program: Any, arrays: Sequence[np.ndarray], count: int) -> Calls:
    """Time `count` calls, after one that is not timed."""
    program.execute(arrays)
    found = []
    for _ in range(count):
        start = time.perf_counter()
        program.execute(arrays)
        found.append((time.perf_counter() - start) * 1e3)
    return Calls(tuple(sorted(found)))


@dataclass
class Kernels:
    """Milliseconds per call in each part of a program.

    `lines` are (text, time) in program order, time None where the line is no work of its own;
    `groups` sum them by name: (total, launches). `note` says what was measured.
    """

    note: str
    lines: list[tuple[str, float | None]] = field(default_factory=list)
    groups: dict[str, tuple[float, float]] = field(default_factory=dict)
    summed_over: int = 1  # threads whose times are added up

    @property
    def total(self) -> float:
        return sum(t for t, _ in self.groups.values())

    def add(self, group: str, milliseconds: float, launches: float = 1) -> None:
        total, n = self.groups.get(group, (0.0, 0.0))
        self.groups[group] = (total + milliseconds, n + launches)


def instruction_times(
    program: Any, arrays: Sequence[np.ndarray], count: int, version: Numbering = "seed"
) -> Kernels:
    """Times of each instruction of a `ref` program over `count` calls."""
    spent: dict[Any, list[float]] = {}
    last = 0.0

    def trace(op: Any, results: Any) -> None:
        nonlocal last
        spent.setdefault(op, []).append(time.perf_counter() - last)
        last = time.perf_counter()

    for _ in range(count):
        last = time.perf_counter()
        program.execute(arrays, trace=trace)
    means = {op: middle_mean(sorted(times)) * 1e3 for op, times in spent.items()}
    found = Kernels(
        f"times of each instruction in the interpreter over {count} calls, means without the "
        "quickest and slowest quarter"
    )
    listing = list_program(program.program, numbering=version, kernel_prefix="ref")
    with program.program.store.active():
        for line in listing.main.visible():
            own = line.operation is not None and line.op != "get_tuple_elem"
            taken = means.get(line.operation) if own else None
            found.lines.append((_text(line), taken))
            if taken is not None:
                found.add(line.op, taken)
    return found


def middle_mean(times: Sequence[float]) -> float:
    """The mean of sorted times without the lowest and the highest quarter."""
    cut = len(times) // 4
    return float(np.mean(times[cut : len(times) - cut]))


def kernel_times(
    program: Any,
    arrays: Sequence[np.ndarray],
    count: int,
    threads: int,
    version: Numbering = "seed",
) -> Kernels:
    """Times of each kernel of a `cpu` program, means over `count` calls.

    Errors: RunError, TargetError where the profiler cannot run.
    """
    from mgx_mlir.runtime.profile import profile

    executable = program.executable
    measured = profile(executable.vmfb, program.params, arrays, threads=threads, calls=count)
    each = {d.name: d.seconds / d.launches * 1e3 for d in measured.dispatches if d.launches}
    where = "" if threads == 1 else f", summed over {threads} threads"
    found = Kernels(
        f"times in each kernel's code by the runtime's counters, means over {count} calls in a "
        f"process of its own{where}",
        summed_over=threads,
    )
    listing = list_program(program.program, numbering=version, kernel_prefix=program.target)
    kernels = [i for i in listing.main.visible() if i.op.startswith(f"{program.target}::")]
    launched = match(kernels, executable.kernels)
    encodings = [d for d in measured.dispatches if d.name.startswith(_ENCODING)]
    packing = sum(d.seconds for d in encodings) * 1e3
    packs = sum(d.launches for d in encodings)
    if launched is None:
        _by_launch(found, measured.dispatches, len(executable.kernels), len(kernels))
    else:
        found.note += "; launches that share code share its mean time"
        by_line = {id(k): name for k, name in zip(kernels, launched, strict=True)}
        _by_kernel(found, program, listing, by_line, each)
    if packing:
        found.lines.append(("packing of operands", packing))
        found.add("packing of operands", packing, packs)
    return found


def _by_kernel(
    found: Kernels, program: Any, listing: Listing, launched: dict[int, str], each: dict[str, float]
) -> None:
    with program.program.store.active():
        for line in listing.main.visible():
            name = launched.get(id(line))
            taken = None if name is None else each.get(name, 0.0)
            found.lines.append((_text(line), taken))
            if taken is not None:
                found.add(line.op, taken)


def _by_launch(found: Kernels, dispatches: Sequence[Any], launches: int, kernels: int) -> None:
    found.note += (
        f"; the backend made {launches} launches of {kernels} kernels, so they go by its names"
    )
    ordered = sorted(dispatches, key=lambda d: _ordinal(d.name))
    for d in ordered:
        if d.name.startswith(_ENCODING):
            continue
        times = "" if d.launches == 1 else f" x {d.launches:g}"
        found.lines.append((f"{d.name}{times}", d.seconds * 1e3))
        found.add(re.sub(r"^.*?_dispatch_\d+_", "", d.name), d.seconds * 1e3, d.launches)


def _ordinal(name: str) -> tuple[int, str]:
    m = re.search(r"_dispatch_(\d+)", name)
    return (int(m[1]) if m else -1, name)


def match(kernels: Sequence[Instruction], launches: Sequence[str]) -> list[str] | None:
    """The launch of each kernel in order; None where it cannot be told.

    It can where there are as many of both, the backend kept their order, and no launch is named
    after another kind of work than its kernel's.
    """
    if len(kernels) != len(launches):
        return None
    first = [_ordinal(name)[0] for name in dict.fromkeys(launches)]
    if first != sorted(first):
        return None
    for kernel, name in zip(kernels, launches, strict=True):
        ops = set(kernel.op.split("::", 1)[1].split("_"))
        for operators, words in _FAMILIES:
            if ops.intersection(operators) and not any(w in name for w in words):
                return None
    return list(launches)


def _text(line: Instruction) -> str:
    from mgx_mlir.printers.text import instruction_text

    return instruction_text(line)


# ---- the report ----------------------------------------------------------------------------------


def report_lines(
    calls: Calls, kernels: Kernels | None, batch: int, version: str = "seed"
) -> list[str]:
    """The performance report: lines of kernels, summary, rate, total, percentiles, overhead.

    `version` "2.16" has the counts and the wording of MIGraphX's newer form. What was not
    measured has no line.
    """
    out: list[str] = []
    if kernels is not None:
        total = kernels.total
        for text, taken in kernels.lines:
            out.append(text if taken is None else f"{text}: {taken:g}ms, {_share(taken, total)}%")
        out += ["", "Summary:"]
        ordered = sorted(kernels.groups.items(), key=lambda g: -g[1][0])
        for name, (taken, n) in ordered:
            middle = f" / {n:g} = {taken / n:g}ms" if version == "2.16" and n else ""
            out.append(f"{name}: {taken:g}ms{middle}, {_share(taken, total)}%")
        out.append("")
    times = calls.times
    rate = batch * 1e3 / calls.total
    if version == "2.16" or batch != 1:
        out.append(f"Batch size: {batch}")
    out += [
        f"Rate: {rate:g}{' inferences' if version == '2.16' else ''}/sec",
        f"Total time: {calls.total:g}ms (Min: {times[0]:g}ms, Max: {times[-1]:g}ms, "
        f"Mean: {float(np.mean(times)):g}ms, Median: {float(np.median(times)):g}ms)",
        "Percentiles (90%, 95%, 99%): ("
        + ", ".join(f"{calls.percentile(p):g}ms" for p in (0.9, 0.95, 0.99))
        + ")",
    ]
    if kernels is not None:
        out.append(f"Total instructions time: {kernels.total:g}ms")
        if kernels.summed_over == 1:  # else the sum is no elapsed time
            over = calls.total - kernels.total
            out += [f"Overhead time: {over:g}ms", f"Overhead: {over / calls.total * 100:.0f}%"]
    return out


def _share(part: float, whole: float) -> int:
    return math.ceil(part / whole * 100) if whole else 0

"""Times of a compiled program's kernels or instructions."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.ref_program import RefProgram
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.debug.work import Work, work_of
from mgx_mlir.printers.instructions import ListedInstruction, Module, Numbering
from mgx_mlir.printers.listing import list_program, source_names
from mgx_mlir.printers.text import instruction_text
from mgx_mlir.tools.driver.call_times import middle_mean, time_calls

if TYPE_CHECKING:
    pass


# words in the names of IREE's launches for these operators
_FAMILIES = (
    (("convolution", "quant_convolution", "convolution_backwards"), ("conv", "matmul", "dot")),
    (
        ("dot", "quant_dot", "blocked_dot"),
        ("matmul", "matvec", "vecmat", "mmt4d", "dot", "contract", "reduction", "attention"),
    ),
)
_UNNAMED = re.compile(r"_dispatch_\d+$")
_PART = re.compile(r"_part(\d+)of(\d+)$")  # part of a kernel that takes several launches
# a matmul split along its depth: parts, rows and columns; another launch adds the parts up
_SPLIT = re.compile(r"_matmul_like_(\d+)x(\d+)x(\d+)x\d+_[^_]+$")
_ENCODING = "_encoding_"  # launches that only pack operands for the ones after them


_NO_WORK = Work(None, None)


def dry_run(
    program: CompiledProgram, arrays: Sequence[np.ndarray], threads: int, count: int
) -> float:
    """Return the milliseconds of a call that computes nothing, with a program's ports."""
    from mgx_mlir.debug.dry_run import DryRun  # start-up: only what the command asks for is loaded

    empty = DryRun(arrays, program.execute(arrays), threads)
    return time_calls(empty, arrays, count).total


@dataclass(frozen=True)
class Line:
    """A line of the program, or an IREE launch."""

    text: str
    ms: float | None = None  # elapsed milliseconds of a call; None: no work of its own
    label: str = ""  # name of the line in tables
    group: str = ""  # name that summaries count the line under
    launches: float = 1  # launches per call
    details: str = ""  # type of the result and dims of the operands
    work: Work = _NO_WORK
    busy_ms: float | None = None  # milliseconds of all threads together, where measured
    nodes: tuple[str, ...] = ()  # source nodes of the model


@dataclass
class Kernels:
    """Milliseconds per call in each part of a program, in its order.

    `note` says what was measured.
    """

    note: str
    lines: list[Line] = field(default_factory=list)

    @property
    def timed(self) -> list[Line]:
        """The lines that have a time."""
        return [line for line in self.lines if line.ms is not None]

    @property
    def total(self) -> float:
        """The sum of all times."""
        return sum(line.ms for line in self.lines if line.ms is not None)

    def groups(self, *, detailed: bool = False) -> dict[str, tuple[float, float]]:
        """Return (milliseconds, launches) by name; `detailed`: and by the operands' types."""
        found: dict[str, tuple[float, float]] = {}
        for line in self.timed:
            name = f"{line.group}{line.details}" if detailed else line.group
            total, n = found.get(name, (0.0, 0.0))
            found[name] = (total + (line.ms or 0.0), n + line.launches)
        return found


def instruction_times(
    program: RefProgram, arrays: Sequence[np.ndarray], count: int, version: Numbering = "seed"
) -> Kernels:
    """Time each instruction of a `ref` program over `count` calls."""
    spent: dict[Any, list[float]] = {}
    last = 0.0

    def trace(op: ir.Operation, results: Sequence[np.ndarray]) -> None:
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
    with program.program.ctx, program.program.store.active():
        for line in listing.main.visible():
            own = line.operation is not None and line.op != "get_tuple_elem"
            taken = means.get(line.operation) if own else None
            found.lines.append(_line(line, taken))
    return found


def _line(line: ListedInstruction, taken: float | None) -> Line:
    """Make the line of an instruction; a timed one has its work too."""
    text = _text(line)
    if taken is None or line.operation is None:
        return Line(text, taken)
    op = line.operation
    return Line(
        text, taken, f"{line.lhs} {line.op}", line.op, details=_details(op), work=work_of(op),
        nodes=tuple(source_names(op.location)),
    )  # fmt: skip


def _details(op: ir.Operation) -> str:
    """Return `<type(dims, dims)>`: the type of the result and the dims of the operands."""
    dims = [
        "x".join("?" if d < 0 else str(d) for d in TensorType.of(v).dims) or "1"
        for v in op.operands
    ]
    kind = TensorType.of(op.results[0]).dtype.name if len(op.results) else ""
    return f"<{kind}({', '.join(dims)})>"


def kernel_times(
    program: IreeProgram,
    arrays: Sequence[np.ndarray],
    count: int,
    threads: int,
    version: Numbering = "seed",
) -> Kernels:
    """Time each kernel of a `cpu` program, means over `count` calls.

    Errors: RunError, TargetError where the profiler cannot run.
    """
    # start-up: only what the command asks for is loaded
    from mgx_mlir.runtime.profile import profile

    executable = program.executable
    entry = program.function_for(arrays)
    measured = profile(
        executable.vmfb, program.params, arrays, threads=threads, calls=count, entry=entry
    )
    by_symbol = {d.name: d for d in measured.dispatches if d.launches}
    launches = executable.launches(entry)
    symbols = {name: executable.symbols.get(name, name) for name in launches}
    each = {
        name: (d.seconds / d.launches * 1e3, d.busy / d.launches * 1e3)
        for name, symbol in symbols.items()
        if (d := by_symbol.get(symbol)) is not None
    }
    if launches and not each:
        raise RunError("the runtime's counters name none of the program's kernels")
    where = "" if threads == 1 else f" on {threads} threads"
    found = Kernels(
        f"elapsed times of each kernel by the runtime's counters, means over {count} calls in a "
        f"process of its own{where}"
    )
    listing = list_program(program.program, numbering=version, kernel_prefix=program.target)
    module = next((m for m in listing.modules if m.name == entry), listing.main)
    kernels, launched = launched_kernels(program, module, launches)
    if entry != "main":
        found.note += f"; for these sizes the variant {entry} is called"
    encodings = [d for d in measured.dispatches if d.name.startswith(_ENCODING)]
    packing = sum(d.seconds for d in encodings) * 1e3
    busy = sum(d.busy for d in encodings) * 1e3
    packs = sum(d.launches for d in encodings)
    if launched is None:
        names = {symbol: name for name, symbol in symbols.items()}
        named = [replace(d, name=names.get(d.name, d.name)) for d in measured.dispatches]
        _by_launch(found, named, len(launches), len(kernels))
    else:
        found.note += "; launches that share code share its mean time"
        by_line = {id(k): names for k, names in zip(kernels, launched, strict=True)}
        _by_kernel(found, program, module, by_line, each)
    if packing:
        name = "packing of operands"
        found.lines.append(Line(name, packing, name, name, packs, busy_ms=busy))
    return found


def _by_kernel(
    found: Kernels,
    program: CompiledProgram,
    module: Module,
    launched: dict[int, tuple[str, ...]],
    each: dict[str, tuple[float, float]],
) -> None:
    with program.program.ctx, program.program.store.active():
        for line in module.visible():
            names = launched.get(id(line))
            if names is None:
                found.lines.append(_line(line, None))
                continue
            taken = sum(each.get(name, (0.0, 0.0))[0] for name in names)
            busy = sum(each.get(name, (0.0, 0.0))[1] for name in names)
            found.lines.append(replace(_line(line, taken), busy_ms=busy))


def _by_launch(found: Kernels, dispatches: Sequence[Any], launches: int, kernels: int) -> None:
    found.note += (
        f"; the backend made {launches} launches of {kernels} kernels, so they go by its names"
    )
    ordered = sorted(dispatches, key=lambda d: _ordinal(d.name))
    for d in ordered:
        if d.name.startswith(_ENCODING):
            continue
        times = "" if d.launches == 1 else f" x {d.launches:g}"
        group = re.sub(r"^.*?_dispatch_\d+_", "", d.name)
        text = f"{d.name}{times}"
        found.lines.append(
            Line(text, d.seconds * 1e3, d.name, group, d.launches, busy_ms=d.busy * 1e3)
        )


def _ordinal(name: str) -> tuple[int, str]:
    m = re.search(r"_dispatch_(\d+)", name)
    return (int(m[1]) if m else -1, name)


def launched_kernels(
    program: CompiledProgram, module: Module, launches: Sequence[str]
) -> tuple[list[ListedInstruction], list[tuple[str, ...]] | None]:
    """Return the kernels among a listed function's lines, and what `match` says launches each."""
    kernels = [i for i in module.visible() if i.op.startswith(f"{program.target}::")]
    return kernels, match(kernels, launches)


def match(
    kernels: Sequence[ListedInstruction], launches: Sequence[str]
) -> list[tuple[str, ...]] | None:
    """Return the launches of each kernel in order; None where they cannot be matched.

    They match if their numbers are equal, counting parts of a kernel as one, in the same order, and
    each launch is named after its kernel's kind of op.
    """
    whole = _joined(launches)
    if whole is not None and len(kernels) < len(whole):
        whole = _with_sums(whole)
    if whole is None or len(kernels) != len(whole):
        return None
    first = [_ordinal(name)[0] for name in dict.fromkeys(launches)]
    if first != sorted(first):
        return None
    for kernel, (name, *_) in zip(kernels, whole, strict=True):
        ops = set(kernel.op.split("::", 1)[1].split("_"))
        for operators, words in _FAMILIES:
            # our loops only have a number
            named = not _UNNAMED.search(name)
            if ops.intersection(operators) and named and not any(w in name for w in words):
                return None
    return whole


def _joined(launches: Sequence[str]) -> list[tuple[str, ...]] | None:
    """Return launches with the parts of one kernel together; None where some are elsewhere."""
    whole: list[tuple[str, ...]] = []
    left = 0  # number of remaining parts
    for name in launches:
        part = _PART.search(name)
        number, count = (int(part[1]), int(part[2])) if part else (1, 1)
        if left != (0 if number == 1 else count - number + 1):
            return None
        whole = [*whole, (name,)] if number == 1 else [*whole[:-1], (*whole[-1], name)]
        left = count - number
    return None if left else whole


def _with_sums(whole: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return launches with each matmul that is split along its depth joined with its sums."""
    found: list[tuple[str, ...]] = []
    for names in whole:
        split = _SPLIT.search(found[-1][-1]) if found else None
        if split and f"_reduction_{split[2]}x{split[3]}x{split[1]}_" in names[0]:
            found[-1] += names
        else:
            found.append(names)
    return found


def _text(line: ListedInstruction) -> str:
    return instruction_text(line)

"""MIGRAPHX_TRACE_EVAL: print each evaluated instruction, its time and its results.

1: the instruction and its milliseconds. 2: also its kinds of values, the first and last five, and
their minimum, maximum, mean and deviation. 3: all values. Everything goes to stderr.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import ml_dtypes
import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.text import element_texts, instruction_text
from mgx_mlir.programs.program_ir import ProgramIR, entry_block

_SHOWN = 5  # elements from each end

Step = Callable[[ir.Operation], object]
Done = Callable[[ir.Operation, Sequence[np.ndarray]], None]


def printing(program: ProgramIR, level: int) -> Done:
    """Return an interpreter trace that prints a `ref` program. Its context must be entered."""
    with program.store.active():
        shown = EvalTrace(program, level)
        shown.parameters()
        stepping = Stepping(program, shown.before, shown.after)
        stepping.begin()
    return stepping.trace


class Stepping:
    """Turns the interpreter's calls after each instruction into calls before and after it.

    Use `begin`, then `trace` as the interpreter's trace.
    """

    def __init__(self, program: ProgramIR, before: Step, after: Done) -> None:
        self.before, self.after = before, after
        self._ops = [view.operation for view in entry_block(program.main()).operations]
        self._next = 0

    def begin(self) -> None:
        """Announce the first instruction."""
        self._announce()

    def _announce(self) -> None:
        # the last one is the return, which is not evaluated
        if self._next < len(self._ops) - 1:
            self.before(self._ops[self._next])

    def trace(self, op: ir.Operation, results: Sequence[np.ndarray]) -> None:
        """Report an instruction's results, and announce the next one."""
        self.after(op, results)
        self._next += 1
        self._announce()


class EvalTrace:
    """Prints instructions, times and values. `kernel_prefix`: that of a compiled program."""

    def __init__(
        self, program: ProgramIR, level: int, stream: TextIO | None = None, *, prefix: str = "ref"
    ) -> None:
        self.level, self.stream = level, stream or sys.stderr
        listing = list_program(program, kernel_prefix=prefix)
        self._parameters = [i for i in listing.main.visible() if i.op == "@param"]
        self._lines: dict[Any, ListedInstruction] = {
            i.operation: i
            for i in listing.main.visible()
            if i.operation is not None and i.op != "get_tuple_elem"
        }
        self._started = 0.0

    def parameters(self) -> None:
        """Print the lines of parameters, which take no time."""
        for line in self._parameters:
            self._say(f"Run instruction: {instruction_text(line)}")

    def before(self, op: ir.Operation) -> str:
        """Name an instruction; its number and operator are returned."""
        line = self._lines.get(op)
        if line is None:  # None stands for an absent input
            return ""
        self._say(f"Run instruction: {instruction_text(line)}")
        self._started = time.perf_counter()
        return f"{line.lhs} {line.op}"

    def after(self, op: ir.Operation, results: Sequence[np.ndarray]) -> None:
        """Print the time and the results of an instruction."""
        taken = (time.perf_counter() - self._started) * 1e3
        self.time(taken)
        if not is_literal(op):
            self.values(results)

    def time(self, milliseconds: float | None) -> None:
        """Print the time of the instruction announced last."""
        if milliseconds is not None:
            self._say(f"Time: {milliseconds:g}ms")

    def values(self, results: Sequence[np.ndarray]) -> None:
        """Print the results of the instruction, in the detail of the level."""
        for array in map(np.asarray, results):
            if self.level == 2:
                for text in summary_lines(array):
                    self._say(text)
            elif self.level > 2:
                self._say(f"Output: {', '.join(element_texts(array))}")

    def _say(self, text: str) -> None:
        print(text, file=self.stream)


def summary_lines(array: np.ndarray) -> list[str]:
    """Describe an array: its kinds of values, some of them, and statistics."""
    if not array.size:
        return ["Output is empty"]
    wide = array.reshape(-1).astype(np.float64)
    texts = element_texts(array.reshape(-1)[:_SHOWN])
    if array.size > 2 * _SHOWN:
        texts = [*texts, "...", *element_texts(array.reshape(-1)[-_SHOWN:])]
    else:
        texts = element_texts(array)
    with np.errstate(all="ignore"):
        return [
            f"Output has {', '.join(value_kinds(array))}",
            f"Output: {', '.join(texts)}",
            f"Min value: {wide.min():g}, Max value: {wide.max():g}, Mean: {wide.mean():g}, "
            f"StdDev: {wide.std():g}",
        ]


def value_kinds(array: np.ndarray) -> list[str]:
    """Return which of C's classes of numbers an array has: normal, subnormal, zero, inf, nan."""
    dtype = dtypes.from_numpy(array.dtype)
    wide = np.abs(array.reshape(-1).astype(np.float64))
    finite = np.isfinite(wide)
    least = 1.0
    if dtype.is_float:
        least = float(ml_dtypes.finfo(array.dtype).smallest_normal)
    kinds = {
        "normal": finite & (wide >= least),
        "subnormal": finite & (wide > 0) & (wide < least),
        "zero": wide == 0,
        "inf": np.isinf(wide),
        "nan": np.isnan(wide),
    }
    return [name for name, where in kinds.items() if where.any()]

"""Builds of a program whose intermediate results are outputs too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import ViewOp, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.buffers import Undefined
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.programs.taps import with_results

BUDGET = 1 << 30  # bytes of intermediate results that one build returns
_UNKNOWN = 64  # assumed size of a dynamic dim in memory estimates

Build = Callable[[ProgramIR], Any]  # function from a program to its CompiledProgram


def is_computed(op: ir.Operation) -> bool:
    """Return whether an instruction computes: it is no literal, view or absent value."""
    if op_class(op) is None or is_literal(op) or is_a(op, (ViewOp, Undefined)):
        return False
    kinds = [isinstance(r.type, ir.RankedTensorType) for r in op.results]
    return bool(kinds) and all(kinds)


def computed_positions(program: ProgramIR) -> list[int]:
    """Return the positions in @main of the instructions that compute."""
    with program.ctx:
        ops = entry_block(program.main()).operations
        return [i for i, view in enumerate(ops) if is_computed(view.operation)]


def with_intermediates(program: ProgramIR, positions: Sequence[int]) -> ProgramIR:
    """Copy the program; its @main also returns every result of the operations at `positions`.

    They follow its own results, in order. Lists and optionals of the interface become arrays.
    """

    def results(block: ir.Block) -> list[tuple[str, ir.Value]]:
        ops = [view.operation for view in block.operations]
        return [(f"tap{i}_{k}", r) for i in positions for k, r in enumerate(ops[i].results)]

    return with_results(program, results)


class SteppedRun:
    """A run of a program on a target that returns every intermediate result.

    The program is built again with its instructions' results as outputs, and run once. If these
    take more than `budget` bytes, it is built and run in several parts. `outputs` are the program's
    own outputs in the first part. Errors: those of `build` and of the run.
    """

    def __init__(
        self,
        program: ProgramIR,
        arrays: Sequence[np.ndarray],
        build: Build,
        *,
        budget: int = BUDGET,
    ) -> None:
        self.program, self.arrays, self.build = program, arrays, build
        self.positions = computed_positions(program)
        self.parts = self._parts(budget)
        self.runs = 0
        self.compiled: Any = None
        self.outputs: list[np.ndarray] = []
        self._held: dict[int, list[np.ndarray]] = {}

    def _parts(self, budget: int) -> list[list[int]]:
        parts: list[list[int]] = [[]]
        used = 0
        with self.program.ctx:
            ops = [view.operation for view in entry_block(self.program.main()).operations]
            for at in self.positions:
                size = sum(map(_nbytes, ops[at].results))
                if parts[-1] and used + size > budget:
                    parts.append([])
                    used = 0
                parts[-1].append(at)
                used += size
        return parts

    def values(self, position: int) -> list[np.ndarray]:
        """Return the target's results of the instruction at a position. Call in program order."""
        if position not in self._held:
            self._run(next(p for p in self.parts if position in p))
        return self._held.pop(position)

    def _run(self, part: Sequence[int]) -> None:
        self.compiled = self.build(with_intermediates(self.program, part))
        found = list(self.compiled.execute(self.arrays))
        self.runs += 1
        with self.program.ctx:
            ops = [view.operation for view in entry_block(self.program.main()).operations]
            counts = [len(ops[at].results) for at in part]
        own = len(found) - sum(counts)
        if not self.outputs:
            self.outputs = found[:own]
        self._held, start = {}, own
        for at, count in zip(part, counts, strict=True):
            self._held[at] = found[start : start + count]
            start += count


def _nbytes(v: ir.Value) -> int:
    t = TensorType.of(v)
    return int(np.prod([d if d >= 0 else _UNKNOWN for d in t.dims], dtype=np.int64)) * t.dtype.size

"""The compiled program of `ref`: each op interpreted in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram, Placement
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.core import interrupts, operand_segments
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import RunError, ShapeError, UsageError
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.programs.interpreter import Interpreter, Trace
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.runtime.trace_eval import printing
from mgx_mlir.runtime.trace_level import trace_level


class RefProgram(CompiledProgram):
    """The reference: each op interpreted in numpy."""

    def __init__(
        self, placement: Placement, program: ProgramIR, stats: CompileStats, compute: str
    ) -> None:
        super().__init__(placement, Signature.of(program.main()), [], stats)
        self._program = program
        self._interpreter = Interpreter(program.module, program.store, compute=compute)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the program that is interpreted: its text and its weights."""
        p = self.program
        with p.ctx:
            text = operand_segments.asm(p.module.operation, enable_debug_info=True)
        weights = dict(p.store.items())
        compute = self._interpreter.compute
        return _unpickled, (self.placement, self.stats, compute, text, weights, p.source)

    def close(self) -> None:
        """Free the program and its weights."""
        super().close()
        for name in ("_program", "_interpreter"):
            vars(self).pop(name, None)

    @property
    def program(self) -> ProgramIR:
        """Return the program that the interpreter runs."""
        if "_program" not in vars(self):
            raise UsageError("the program is closed")
        return self._program

    @interrupts.held
    def execute(self, arrays: Sequence[np.ndarray], trace: Trace | None = None) -> list[np.ndarray]:
        """Run; `trace(op, results)` is called after each instruction.

        Without `trace`, MIGRAPHX_TRACE_EVAL prints the instructions.
        """
        if self.limits is not None and trace is None:
            return self._execute_limited(arrays, self.limits)
        named = {p.name: a for p, a in zip(self.signature.inputs, arrays, strict=True)}
        with self.program.ctx:
            if trace is None and trace_level():
                trace = printing(self.program, trace_level())
            try:
                return self._interpreter.run(named, trace=trace)
            except ShapeError as e:  # sizes of this run that an op refuses
                raise RunError(e.message, location=e.location, notes=e.notes) from None


def _unpickled(
    placement: Placement,
    stats: CompileStats,
    compute: str,
    text: str,
    weights: dict[str, np.ndarray],
    source: str,
) -> RefProgram:
    ctx = new_context()
    module = operand_segments.parse_module(text, ctx)
    return RefProgram(
        placement, ProgramIR(ctx, module, WeightStore(weights), source), stats, compute
    )

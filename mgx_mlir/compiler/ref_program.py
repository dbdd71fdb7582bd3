"""The compiled program of `ref`: each op interpreted in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram, CompileStats, Placement
from mgx_mlir.programs.interpreter import Interpreter, Trace
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.runtime.trace_eval import printing, trace_level


class RefProgram(CompiledProgram):
    """The reference: each op interpreted in numpy."""

    def __init__(
        self, placement: Placement, program: ProgramIR, stats: CompileStats, compute: str
    ) -> None:
        super().__init__(placement, Signature.of(program.main()), [], stats)
        self._program = program
        self._interpreter = Interpreter(program.module, program.store, compute=compute)

    @property
    def program(self) -> ProgramIR:
        """Return the program that the interpreter runs."""
        return self._program

    def execute(self, arrays: Sequence[np.ndarray], trace: Trace | None = None) -> list[np.ndarray]:
        """Run; `trace(op, results)` is called after each instruction.

        Without one, MIGRAPHX_TRACE_EVAL has instructions printed.
        """
        named = {p.name: a for p, a in zip(self.signature.inputs, arrays, strict=True)}
        with self._program.ctx:
            if trace is None and trace_level():
                trace = printing(self._program, trace_level())
            return self._interpreter.run(named, trace=trace)

"""Lowerings of the steps of recurrent networks, which only vector kernels run."""

from __future__ import annotations

from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.ir import ir
from mgx_mlir.dialects.migraphx.recurrent_steps import GruSteps, LstmSteps, RnnSteps
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.recurrent import recurrent
from mgx_mlir.passes.lowering.registry import Results, lowers


@lowers(RnnSteps, GruSteps, LstmSteps)
def steps(
    op: RnnSteps | GruSteps | LstmSteps, ins: tuple[ir.Value | None, ...], e: LoweringContext
) -> Results:
    """Run all steps in one kernel, with or without our kernel boundaries."""
    isa = isa_of(e.options.arch) if e.options.target == "cpu" else None
    reason = "the target has no vector kernels" if isa is None else recurrent.refusal(op)
    if isa is None or reason is not None:
        raise CompileError(
            f"has no kernel for all steps: {reason}", notes=["rewrite_rnn makes a loop of it"]
        )
    return recurrent.build(e, op, ins, isa)

"""The entry of the lowering: a program becomes linalg on tensors, with every family loaded."""

from __future__ import annotations

from collections.abc import Mapping

from mgx_mlir.core import interrupts
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of, kernels_for
from mgx_mlir.passes.lowering.module import ModuleLowering
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR


@interrupts.held
def lower_to_linalg(
    program: ProgramIR,
    options: LowerOptions | None = None,
    variants: Mapping[str, ProgramIR] | None = None,
    listed: str = "main",
    *,
    readable: bool = False,
) -> Lowered:
    """Lower a program to linalg on tensors, as the function @main.

    `variants` are the program for some sizes, in the same context; each becomes a function beside
    @main, with shared weights. `listed`: the function whose kernels are listed. readable: loops
    over workgroups keep a mark instead of IREE's attribute, which the bindings refuse to parse.
    Raises CompileError naming every op without a lowering,
    with its source node. The programs are not changed.
    """
    # start-up: the lowering is loaded only where needed
    from mgx_mlir.passes.lowering import families

    families.load()
    programs = {"main": program, **(variants or {})}
    options = options or LowerOptions()
    with kernels_for(isa_of(options.arch) if options.target == "cpu" else None):
        return ModuleLowering(programs, options, listed, readable=readable).run()

"""lower_to_linalg: the module that IREE compiles, for mgx-opt and for reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import Pass, option


@dataclass(frozen=True)
class LowerToLinalg(Pass):
    """Replace the program by its lowering to linalg on tensors.

    Weights become parameters, which the module refers to by name.
    """

    name: ClassVar[str] = "lower_to_linalg"
    target: str = option("cpu", "the target whose lowerings are used")
    regions: bool = option(True, "put each kernel into a dispatch region")
    arch: str = option("host", "the CPU, host or a name of LLVM's; a GPU's gfx name")
    vector_kernels: bool = option(True, "kernels as vector loops on CPUs")
    fast_math: bool = option(True, "kernels may round in another order than the model")
    row_bits: int = option(16, "bits of many rows by 4-bit weights, and at 8 of f32 in attention")

    def run(self, module: ir.Operation) -> bool:
        # start-up: the lowering is loaded only where needed
        from mgx_mlir.passes.lowering.lower import lower_to_linalg

        body = module.regions[0].blocks[0]
        main = list(body.operations)
        program = ProgramIR(
            module.context,
            cast(ir.Module, module.opview),  # has the members of a module that a program uses
            literals.current_store(),
        )
        lowered = lower_to_linalg(
            program,
            LowerOptions(
                self.target,
                self.regions,
                self.arch,
                self.vector_kernels,
                fast_math=self.fast_math,
                row_bits=self.row_bits,
            ),
            readable=True,
        )
        made = ir.Module.parse(lowered.bytecode, module.context)
        for op in main:
            op.operation.erase()
        for op in list(made.body.operations):
            op.operation.detach_from_parent()
            body.append(op)
        return True

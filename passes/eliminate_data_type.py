"""eliminate_data_type: compute ops of unwanted types in another type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.analysis.retype import (
    Retyping,
    ops_field,
    ops_option,
    type_option,
    types_option,
)
from mgx_mlir.rewrite.passes import Pass, option


@dataclass(frozen=True)
class EliminateDataType(Pass):
    """Convert operands of unwanted types to another type, and the results of such ops back.

    quant_dot and quant_convolution become dot and convolution. The result is as exact as the target
    type: f32 holds integers up to 2**24, and does not wrap. Ops that do not accept the target type
    (indices, bits) stay, and so do convert, if, loop and arguments. No default pipeline has it, as
    IREE compiles every type for every target.
    """

    name: ClassVar[str] = "eliminate_data_type"
    types: tuple[str, ...] = option((), "the unwanted types")
    target_type: str = option("float", "the type to compute in instead")
    unsupported_ops: tuple[str, ...] = ops_field()

    def __post_init__(self) -> None:
        type_option(self.target_type)
        types_option(self.types)
        ops_option(self.unsupported_ops)

    def run(self, module: ir.Operation) -> bool:
        target = type_option(self.target_type)
        types = types_option(self.types) - {target}
        return Retyping(types, target, ops_option(self.unsupported_ops)).run(module)

"""fuse_ops: fuse a dot, convolution, pooling or transpose with its epilogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.fuse_pointwise import form_kernels
from mgx_mlir.passes.fusion.plan import ANCHOR_RULES, Widths
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.rewrite_trace import Rule


@dataclass(frozen=True)
class FuseOps(Pass):
    """Group each dot, convolution, pooling, transpose and gather with the pointwise ops after it.

    Bias, activation, residual and quantisation become parts of a `group` kernel.
    """

    name: ClassVar[str] = "fuse_ops"
    rules: ClassVar[tuple[Rule, ...]] = ANCHOR_RULES
    max_inputs: int = option(24, "operands that a kernel may have")

    def run(self, module: ir.Operation) -> bool:
        return form_kernels(module, self.rules, Widths(self.max_inputs))

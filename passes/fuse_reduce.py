"""fuse_reduce: a reduction and the pointwise ops around it become one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.fuse_pointwise import form_kernels
from mgx_mlir.passes.fusion.plan import POINTWISE_RULES, REDUCE_RULES, Widths
from mgx_mlir.passes.fusion.reshapes import move_reshapes, reduce_reshape
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.pattern import Pattern
from mgx_mlir.rewrite.rewrite_trace import Rule


@dataclass(frozen=True)
class FuseReduce(Pass):
    """Group reductions over the same axes with the pointwise ops around them.

    Softmax is one of them. The kernels are `fused_reduce`; the other pointwise ops become kernels
    as in fuse_pointwise, which need not run before.
    """

    name: ClassVar[str] = "fuse_reduce"
    patterns: ClassVar[tuple[Pattern, ...]] = (reduce_reshape,)
    rules: ClassVar[tuple[Rule, ...]] = REDUCE_RULES
    max_inputs: int = option(24, "operands that a kernel may have")
    rewrite_reshapes: bool = option(True, "move reshapes from before reductions to after them")

    def run(self, module: ir.Operation) -> bool:
        changed = False
        if self.rewrite_reshapes:
            changed = move_reshapes(module, self.patterns, self)
        rules = (*POINTWISE_RULES, *self.rules)
        return form_kernels(module, rules, Widths(self.max_inputs)) or changed

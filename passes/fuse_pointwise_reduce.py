"""fuse_pointwise_reduce: every op that computes becomes part of one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.passes import Pass, option
from mgx_mlir.core.pattern import PatternSet
from mgx_mlir.passes.fuse_pointwise import form_kernels
from mgx_mlir.passes.grouping import ANCHOR_RULES, POINTWISE_RULES, REDUCE_RULES
from mgx_mlir.passes.rewrite_reshapes import pointwise_reshape, reduce_reshape


@dataclass(frozen=True)
class FusePointwiseReduce(Pass):
    """fuse_pointwise, fuse_reduce and fuse_ops in one walk, so that each op joins the kernel that
    it fits best: an anchor's, then a reduction's, then that of other pointwise ops."""

    name: ClassVar[str] = "fuse_pointwise_reduce"
    max_inputs: int = option(24, "operands that a kernel may have")
    rewrite_reshapes: bool = option(True, "move reshapes out from between the ops first")

    def run(self, module: ir.Operation) -> bool:
        changed = False
        if self.rewrite_reshapes:
            changed = PatternSet((pointwise_reshape, reduce_reshape)).apply(module, self) > 0
        rules = (*POINTWISE_RULES, *REDUCE_RULES, *ANCHOR_RULES)
        return form_kernels(module, rules, self.max_inputs) or changed

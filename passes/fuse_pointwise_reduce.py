"""fuse_pointwise_reduce: put every computing op into a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.fuse_pointwise import form_kernels
from mgx_mlir.passes.fusion.plan import (
    ANCHOR_RULES,
    MAX_BUFFERS,
    POINTWISE_RULES,
    REDUCE_RULES,
    Widths,
    is_8_bit_product,
    is_computed_or_weighted,
    is_weighted,
    never,
)
from mgx_mlir.passes.fusion.reshapes import move_reshapes, pointwise_reshape, reduce_reshape
from mgx_mlir.rewrite.passes import Pass, option


@dataclass(frozen=True)
class FusePointwiseReduce(Pass):
    """Form all kernels: fuse_pointwise, fuse_reduce and fuse_ops in one walk.

    So each op joins the kernel that it fits best: that of a dot, convolution, pooling or transpose,
    then a reduction's, then that of other pointwise ops.
    """

    name: ClassVar[str] = "fuse_pointwise_reduce"
    max_inputs: int = option(24, "operands that a kernel may have")
    max_buffers: int = option(MAX_BUFFERS, "operands and results that a kernel may have")
    quantized: bool = option(False, "8-bit matmuls and convolutions fuse their epilogues too")
    weighted: bool = option(False, "8-bit ones with constant weights do")
    computed: bool = option(False, "with `weighted`: and 8-bit dots of two computed operands")
    rewrite_reshapes: bool = option(True, "move reshapes out from between the ops first")

    def run(self, module: ir.Operation) -> bool:
        changed = False
        if self.rewrite_reshapes:
            changed = move_reshapes(module, (pointwise_reshape, reduce_reshape), self)
        rules = (*POINTWISE_RULES, *REDUCE_RULES, *ANCHOR_RULES)
        more = is_8_bit_product if self.quantized else is_weighted if self.weighted else never
        if self.weighted and self.computed:
            more = is_computed_or_weighted
        return (
            form_kernels(module, rules, Widths(self.max_inputs, self.max_buffers), more) or changed
        )

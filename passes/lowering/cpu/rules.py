"""The kernel rules of CPUs, in the order in which they are tried."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.dialects.migraphx.fused import FusedReduce
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.attention import attention_kernel
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.irregular import box_suppression, nonzero, trees
from mgx_mlir.passes.lowering.cpu.matmul import dot_kernel, panel_rows
from mgx_mlir.passes.lowering.cpu.nest import (
    concat,
    copies,
    elementwise,
    parts,
    resize,
    rotary,
)
from mgx_mlir.passes.lowering.cpu.recurrent import recurrent
from mgx_mlir.passes.lowering.cpu.rows import (
    arg_extreme,
    computed_rows,
    prefix_scan,
    row_kernel,
    topk,
)
from mgx_mlir.passes.lowering.cpu.rows.row_form import RowForm
from mgx_mlir.passes.lowering.cpu.windows import convolution_kernel, planes, pooling_kernel
from mgx_mlir.passes.lowering.select import KernelRule


def _rows(e: LoweringContext, site: KernelSite, form: RowForm) -> list[ir.Value]:
    return computed_rows.as_tensor(e, form, site.isa)


# rules of kernels: fused ops
KERNELS = (
    concat.RULE,
    KernelRule("rows", (FusedReduce,), row_kernel.match, _rows),
    attention_kernel.RULE,
    panel_rows.RULE,
    copies.GATHER_KERNEL,
    planes.RULE,
    convolution_kernel.RULE,
    dot_kernel.RULE,
    dot_kernel.FEW_BITS,
    pooling_kernel.RULE,
    elementwise.BYTE_ELEMENTWISE,
    elementwise.ELEMENTWISE,
    elementwise.TRANSPOSE,
    elementwise.TWO_STEPS,
)
# rules of ops outside of kernels, by their class
OPS = (
    arg_extreme.RULE,
    resize.RULE,
    prefix_scan.RULE,
    rotary.RULE,
    box_suppression.RULE,
    copies.GATHER,
    copies.GATHER_BY_TUPLES,
    copies.BORDER,
    nonzero.RULE,
    trees.RULE,
    topk.RULE,
    recurrent.RULE,
    parts.SLICE,
    parts.CONCAT,
)
VIEWS = (copies.REPEAT, copies.SPREAD)  # rules of views that become tensors
EXPRESSIONS = (elementwise.BYTE_OP,)  # rules of pointwise ops outside of kernels

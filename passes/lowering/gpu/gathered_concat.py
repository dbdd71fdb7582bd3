"""Concatenations on GPUs as one loop, in which each element selects its part.

CPUs copy the parts instead, as such a loop is several times slower there.
"""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.fused import FusedConcat
from mgx_mlir.passes.lowering import kernel_region
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.ops import fused_concat
from mgx_mlir.passes.lowering.select import KernelRule, Refusal


def match(e: LoweringContext, site: GpuKernelSite) -> list[list[Extent]] | Refusal:
    """Take a concatenation of static dims whose elements are read by index maps."""
    if not site.bounded:
        return Refusal("it is not alone in its dispatch region")
    types = [TensorType.of(r) for r in site.op.results]
    if not all(t.is_static for t in types):
        return Refusal("its result has dynamic dims")
    if not fused_concat.fits(site.body):
        return Refusal("it has several results, or elements that no index map reads")
    return [list(t.dims) for t in types]


def build(e: LoweringContext, site: GpuKernelSite, extents: list[list[Extent]]) -> list[ir.Value]:
    """Build the loop."""
    with e.kernel():
        return kernel_region.dispatched(
            e, site.op, extents, lambda: fused_concat.fused_concat(e, site.body)
        )


RULE = KernelRule("gathered_concat", (FusedConcat,), match, build)

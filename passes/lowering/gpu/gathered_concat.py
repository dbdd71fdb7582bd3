"""Concatenations on GPUs as one loop, in which each element selects its part.

CPUs copy the parts instead, as such a loop is several times slower there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mgx_mlir.core.dynamic_dims import UndecidedError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.fused import FusedConcat
from mgx_mlir.passes.lowering import kernel_region
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.named_elements import NamedElements
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.named_body import NamedBody
from mgx_mlir.passes.lowering.ops import fused_concat
from mgx_mlir.passes.lowering.select import KernelRule, Refusal


@dataclass(frozen=True)
class _Plan:
    """A concatenation whose elements are read by index maps."""

    body: ir.Block  # block of the kernel, or the copy of it that names dynamic dims
    extents: Sequence[Extent]  # dims of the result
    named: NamedBody | None  # None where dims are fixed


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take a concatenation whose elements are read by index maps, along a fixed dim."""
    values = [*site.body.arguments, *site.op.results]
    if all(TensorType.of(v).is_static for v in values):
        if not site.bounded:
            return Refusal("it is not alone in its dispatch region")
        return _planned(site.body, None)
    if not e.options.regions or e.in_kernel:
        return Refusal("it is not alone in its dispatch region")
    with e.kernel():
        tensors: dict[ir.Value, ir.Value] = {a: e.tensor(a) for a in site.body.arguments}
        named = NamedBody(e, site.op, site.body, tensors)
        try:
            plan = _planned(named.block, named)
            if not isinstance(plan, Refusal):
                dims = TensorType.of(fused_concat.result_of(plan.body)).dims
                named.check_sizes()
                return replace(plan, extents=[named.index(e, d) for d in dims])
        except UndecidedError as error:
            plan = Refusal(str(error) or "its extents depend on elements")
    named.forget()
    return plan


def _planned(body: ir.Block, named: NamedBody | None) -> _Plan | Refusal:
    if not fused_concat.fits(body):
        return Refusal("it has several results, or elements that no index map reads")
    dims = list(TensorType.of(fused_concat.result_of(body)).dims)
    if DYN in dims:
        return Refusal("its result has dynamic dims that its operands do not have")
    return _Plan(body, dims, named)


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loop."""
    value, named = fused_concat.result_of(plan.body), plan.named

    def fixed() -> list[ir.Value]:
        return [fused_concat.loop_of(e, value, {a: e.expr(a) for a in plan.body.arguments})]

    with e.kernel():
        if named is None:
            return kernel_region.dispatched(e, site.op, [plan.extents], fixed)
        # ahead of the region, whose ops become code
        elements = NamedElements(e, named.tensors, named, whole=True)

        def dynamic() -> list[ir.Value]:
            return [fused_concat.loop(e, value, elements, list(named.tensors), plan.extents)]

        made = kernel_region.dispatched(e, site.op, [plan.extents], dynamic)
        named.forget()
        return made


RULE = KernelRule("gathered_concat", (FusedConcat,), match, build)

"""fuse_pointwise: pointwise ops that can share a loop become one kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.analysis.control_flow import CONTROL, host_arguments_of
from mgx_mlir.passes.analysis.host_sizes import host_sizes
from mgx_mlir.passes.fusion.build import KernelBuilder
from mgx_mlir.passes.fusion.plan import POINTWISE_RULES, Grouping, Widths, never
from mgx_mlir.passes.fusion.reshapes import move_reshapes, pointwise_reshape
from mgx_mlir.programs.program_ir import functions
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.pattern import Pattern
from mgx_mlir.rewrite.rewrite_trace import Rule


@dataclass(frozen=True)
class FusePointwise(Pass):
    """Group pointwise ops into `pointwise` kernels.

    Broadcasts of a kernel's operands, and literals of one number, go inside; a value with other
    readers becomes a result of the kernel.
    """

    name: ClassVar[str] = "fuse_pointwise"
    patterns: ClassVar[tuple[Pattern, ...]] = (pointwise_reshape,)
    rules: ClassVar[tuple[Rule, ...]] = POINTWISE_RULES
    max_inputs: int = option(24, "operands that a kernel may have")
    rewrite_reshapes: bool = option(True, "move reshapes out from between pointwise ops first")

    def run(self, module: ir.Operation) -> bool:
        changed = False
        if self.rewrite_reshapes:
            changed = move_reshapes(module, self.patterns, self)
        return form_kernels(module, self.rules, Widths(self.max_inputs)) or changed


def form_kernels(
    module: ir.Operation,
    rules: Collection[Rule],
    most: Widths,
    is_anchor: Callable[[ir.Operation], bool] = never,
) -> bool:
    """Form the kernels that `rules` allow; return whether there are any.

    is_anchor: predicate of anchors besides the default ones.
    """
    enabled = frozenset(r for r in rules if r.enabled)
    changed = False
    for function in list(functions(module)):
        for block in function.regions[0].blocks:
            changed |= _form(block, enabled, most, host_sizes(block), is_anchor)
    return changed


def _form(
    block: ir.Block,
    rules: frozenset[Rule],
    most: Widths,
    hostlike: set[ir.Value],
    is_anchor: Callable[[ir.Operation], bool],
) -> bool:
    """Form the kernels of a block and of the branches and loops in it.

    `hostlike`: the values from outside that are scalars of the host.
    """
    grouping = Grouping(block, rules, most, hostlike, is_anchor)
    changed = grouping.run()
    if changed:
        KernelBuilder(grouping).run()
    for op in [view.operation for view in block.operations]:
        if is_a(op, CONTROL):
            for inner, arguments in host_arguments_of(op, grouping.hostlike.__contains__):
                inside = grouping.hostlike | arguments
                changed |= _form(inner, rules, most, inside, is_anchor)
    return changed

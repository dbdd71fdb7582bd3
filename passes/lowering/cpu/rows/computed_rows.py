"""Rows that another kernel reads one by one, and that it computes on its stack before."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Tile
from mgx_mlir.passes.lowering.cpu.rows import group_rows, row_kernel
from mgx_mlir.passes.lowering.cpu.rows.row_form import RowForm


@dataclass(frozen=True)
class GivenRows:
    """Rows [rows, depth] of a tensor."""

    x: ir.Value

    @property
    def inputs(self) -> list[ir.Value]:
        """Return the tensors that a dispatch of the rows reads."""
        return [self.x]

    @property
    def extents(self) -> list[Index]:
        """Return further extents that its body needs."""
        return []

    def scratch(self, k: WorkgroupBuilder) -> list[ir.Value]:
        """Return tensors on the stack, which loops over rows carry."""
        return []

    def row(
        self, k: WorkgroupBuilder, at: Index, scratch: Sequence[ir.Value]
    ) -> tuple[ir.Value, list[Index], list[ir.Value]]:
        """Return the tensor that has a row, its index there, and the scratch."""
        return k.inputs[0], [at], []


@dataclass(frozen=True)
class ComputedRows:
    """Rows of a form: all leading dims are one, and the last one is a row."""

    plan: row_kernel.Plan

    @staticmethod
    def of(e: LoweringContext, form: RowForm, isa: Isa) -> ComputedRows | None:
        """Return the rows of a form; None where leading dims are several for an operand."""
        *outer, last = form.groups
        if len(outer) > 1 or not last.reduced or any(g.reduced for g in outer):
            return None
        return ComputedRows(row_kernel.Plan(e, form, isa))

    @property
    def inputs(self) -> list[ir.Value]:
        """Return the tensors that a dispatch of the rows reads."""
        return [i.tensor for i in self.plan.inputs.values()]

    @property
    def extents(self) -> list[Index]:
        """Return further extents that its body needs."""
        return [g.extent for g in self.plan.groups]

    @property
    def _outer(self) -> int:
        """Return how many dims a tile has before the elements of a row."""
        return len(self.plan.groups) - 1

    def scratch(self, k: WorkgroupBuilder) -> list[ir.Value]:
        """Return tensors on the stack, which loops over rows carry."""
        depth = k.inner(self.plan.groups[-1].extent)
        return [k.empty([*[1] * self._outer, depth])]

    def row(
        self, k: WorkgroupBuilder, at: Index, scratch: Sequence[ir.Value]
    ) -> tuple[ir.Value, list[Index], list[ir.Value]]:
        """Compute a row; return the tensor that has it, its index there, and the scratch."""
        plan, one = self.plan, [1] * self._outer
        size = [*one, k.inner(plan.groups[-1].extent)]
        tile = Tile(k, plan.narrow, [*[at for _ in one], 0], size, scratch)
        made = plan.workgroup(tile).run()
        return made[0], [0 for _ in one], made


def as_tensor(e: LoweringContext, form: RowForm, isa: Isa) -> list[ir.Value]:
    """Build the results of a form by a kernel of their own."""
    return (group_rows.plan_of(e, form, isa) or row_kernel.Plan(e, form, isa)).run()

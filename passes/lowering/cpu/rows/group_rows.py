"""Row kernels whose last dims are {.., groups, channels of one}: totals of neighbouring lanes.

A norm over groups of channels-last channels: vectors lie along all channels, whose partial totals
are on the stack until those of each group are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame import compaction
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Tile
from mgx_mlir.passes.lowering.cpu.rows.accumulators import Accumulator
from mgx_mlir.passes.lowering.cpu.rows.row_form import AxisGroup, RowForm, Total
from mgx_mlir.passes.lowering.cpu.rows.row_kernel import Carried, Plan, Rows, Site, Workgroup
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed

_MOST = 128  # channels of a group; with more, vectors along a group waste few lanes


def plan_of(e: LoweringContext, form: RowForm, isa: Isa) -> Plan | None:
    """Return the plan of a kernel over groups of its last dim; None where it has none."""
    if len(form.groups) < 3:
        return None
    *_, before, kept, lane = form.groups
    groups, each = kept.extent, lane.extent
    if kept.reduced or not (lane.reduced and before.reduced):
        return None
    if not isinstance(groups, int) or not isinstance(each, int) or each > _MOST:
        return None
    if any((kept.dims[0] in o.map) != (lane.dims[0] in o.map) for o in form.operands.values()):
        return None
    totals = [t for level in form.levels for t in level]
    if any(computed(t.source.type.dtype) is not dtypes.FLOAT for t in totals):
        return None
    if not all(full for _, _, full in form.results):
        return None
    return _GroupPlan(e, form, isa, groups, each)


class _GroupPlan(Plan):
    """Sizes of a kernel whose lanes are all channels."""

    def __init__(self, e: LoweringContext, form: RowForm, isa: Isa, groups: int, each: int) -> None:
        self.joined, self.count = each, groups
        *rest, kept, lane = form.groups
        super().__init__(
            e, form, isa, [*rest, AxisGroup((*kept.dims, *lane.dims), False, groups * each)]
        )
        self.kept = None

    def _steps(self) -> dict[int, int]:
        """Give each workgroup whole groups, of about as many channels as the widest vector."""
        out = super()._steps()
        each = self.joined
        whole = [n * each for n in range(1, self.count + 1) if self.count % n == 0]
        most = max(each, 2 * self.wide)
        fit = [n for n in whole if n <= most]
        # prefer whole vectors, then at least two workgroups, then long vectors
        channels = self.count * each
        out[self.lane] = max(fit, key=lambda n: (n % self.narrow == 0, n < channels, n))
        return out

    def workgroup(self, tile: Tile) -> Workgroup:
        return _GroupWorkgroup(self, tile)


class _GroupWorkgroup(Workgroup):
    """Builds the body of a workgroup: the levels of reductions in sequence, over all lanes."""

    def rows(self, left: Sequence[int], local: dict[int, Index], carried: Carried) -> Carried:
        if left:
            return super().rows(left, local, carried)
        k, lane, step = self.k, self.plan.lane, self.plan.steps[self.plan.lane]
        at = {i: k.add(self.start[i], j) for i, j in local.items()}
        made = _Totals(k)

        def site(j: Index, lanes: int, masked: bool) -> Site:
            here = {**at, lane: k.add(self.start[lane], j)}
            return Site(here, {**local, lane: j}, lanes, masked, k.sub(step, j))

        def rows_at(j: Index, lanes: int, masked: bool) -> Rows:
            rows = Rows(self, site(j, lanes, masked))
            made.read(rows, j)
            return rows

        for n, level in enumerate(self.form.levels):
            partial = _partial_totals(k, rows_at, n, level)
            held = self.sweep(step, [k.empty([step]) for _ in level], partial)
            for total, tensor in zip(level, held, strict=True):
                made.held[id(total)] = self.joined(total, tensor)
        return self.sweep(
            step, carried, lambda j, lanes, masked, c: rows_at(j, lanes, masked).finish(c)
        )

    def joined(self, total: Total, partial: ir.Value) -> ir.Value:
        """Return for each lane the total of its group."""
        k, lanes, each = self.k, self.plan.narrow, self.plan.joined
        found = Accumulator(k, total.how, dtypes.FLOAT)

        def one(g: Index, c: Carried) -> Carried:
            def more(i: Index, masked: bool, held: Carried) -> Carried:
                x = k.read(c[0], [g, i], lanes, masked=masked)
                inside = compaction.inside(k, k.sub(each, i), lanes) if masked else None
                return found.add(held, x, inside)

            value = found.total([k.along(each, lanes, found.start(lanes), more)], across=True).value
            wide = k.broadcast(value, lanes)

            def spread(i: Index, masked: bool, c: Carried) -> Carried:
                return [k.write(wide, c[0], [g, i], masked=masked)]

            return k.along(each, lanes, c, spread)

        groups = self.plan.steps[self.plan.lane] // each
        split = k.expand(partial, [groups, each])
        (made,) = self.each(groups, [split], one)
        return k.collapse(made, [[0, 1]])


def _partial_totals(
    k: WorkgroupBuilder, rows_at: Callable[[Index, int, bool], Rows], n: int, level: list[Total]
) -> Callable[[Index, int, bool, Carried], Carried]:
    """Return the function that computes and writes the totals of a level for each lane."""

    def one(j: Index, lanes: int, masked: bool, c: Carried) -> Carried:
        rows = rows_at(j, lanes, masked)
        rows.reduce(n, level, [])
        values = [rows.totals[id(t)].value for t in level]
        return [k.write(v, t, [j], masked=masked) for v, t in zip(values, c, strict=True)]

    return one


@dataclass
class _Totals:
    """The totals of levels that are made, for each lane."""

    k: WorkgroupBuilder
    held: dict[int, ir.Value] = field(default_factory=dict[int, ir.Value])

    def read(self, rows: Rows, j: Index) -> None:
        """Load the totals for the vector at `j`."""
        for key, tensor in self.held.items():
            v = self.k.read(tensor, [j], rows.row.lanes, masked=rows.row.masked)
            rows.totals[key] = TypedScalar(v, dtypes.FLOAT)

"""Kernels of reductions and pointwise ops, row by row: softmax, norms, sums and extremes.

Where the last dims are reduced, a row is read along them and its totals are scalars; where they
are kept, a vector holds neighbouring rows, and so do the totals. A level of reductions is one pass
over the row. A costly value that is read again (the exponentials of a softmax) is kept in the
result's tile until the last pass, or on the stack where the result has another type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import cast

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame import compaction
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS, UNKNOWN
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    WorkgroupBuilder,
)
from mgx_mlir.passes.lowering.cpu.nest.nest import Nest, Tile
from mgx_mlir.passes.lowering.cpu.rows import row_form
from mgx_mlir.passes.lowering.cpu.rows.accumulators import Accumulator, ArgAccumulator
from mgx_mlir.passes.lowering.cpu.rows.row_form import (
    ArgExtreme,
    AxisGroup,
    Refused,
    RowForm,
    Step,
    Total,
    is_costly,
    parts,
)
from mgx_mlir.passes.lowering.cpu.rows.windows import windows_of
from mgx_mlir.passes.lowering.expr import Compute, DimMap, Expr, Extent, Leaf, Splat, View, compose
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed
from mgx_mlir.passes.lowering.scalar import narrow as narrow_scalar
from mgx_mlir.passes.lowering.scalar import widen as widen_scalar
from mgx_mlir.passes.lowering.select import Refusal

Carried = list[ir.Value]


def match(e: LoweringContext, site: KernelSite) -> RowForm | Refusal:
    """Take a fused reduction that is computed row by row."""
    try:
        form = row_form.row_form(e, site.body, site.op.opview.axes)
    except Refused as refused:
        return Refusal(str(refused))
    form.windows.update(windows_of(e, site))
    return form


@dataclass(frozen=True)
class _Input:
    """An operand of the kernel, reshaped to axis groups."""

    tensor: ir.Value
    dtype: DType
    groups: tuple[int, ...]  # axis groups that index the tensor, in order
    first: int = 0  # column of the tensor that a row begins at


@dataclass(frozen=True)
class _Kept:
    """A value that is read back in a later pass."""

    value: Expr
    first: int  # the pass that makes it
    tile: int | None  # index of the result that holds the value; None: it is in scratch
    scratch: tuple[int, ...] = ()  # extents of the scratch


class Plan:
    """Sizes of a kernel, and its dispatch."""

    joined = 1  # adjacent lanes whose totals are combined

    def __init__(
        self, e: LoweringContext, form: RowForm, isa: Isa, groups: list[AxisGroup] | None = None
    ) -> None:
        self.e, self.form, self.groups = e, form, groups or form.groups
        self.lane = len(self.groups) - 1
        self.across = self.groups[self.lane].reduced  # a total is made across the lanes
        self.outer = [i for i, g in enumerate(self.groups[:-1]) if not g.reduced]
        self.inner = [i for i, g in enumerate(self.groups[:-1]) if g.reduced]
        self.narrow = isa.lanes
        self.inputs = {key: self._input(o) for key, o in form.operands.items()}
        # one pass over neighbouring rows reads memory in longer pieces
        only = not self.across and len(form.levels) == 1
        only = only and not any(full for _, _, full in form.results)
        # the index of an extreme takes as many registers
        only = only and not any(isinstance(x, ArgExtreme) for x in form.levels[0])
        self.wide = isa.lanes * (8 if only else 4)
        extent = self.groups[self.lane].extent
        if isinstance(extent, int):
            while self.wide > self.narrow and self.wide > extent:
                self.wide //= 2
        self.steps = self._steps()
        self.kept = self._kept()

    def _input(self, o: row_form.Operand) -> _Input:
        """Reshape an operand, ahead of the kernel, to the groups that it has."""
        e, t = self.e, o.leaf.type
        have = tuple(i for i, g in enumerate(self.groups) if g.dims[0] in o.map)
        dtype, value = t.dtype, o.leaf.value
        extents = [self.groups[i].extent for i in have]
        window = self.form.windows.get(value) if self.lane in have and not dtype.is_bool else None
        if window is not None and self.groups[self.lane].dims == (self.form.rank - 1,):
            extents[-1] = window.width
            wanted = TensorType(dtype, tuple(e.static_dims(extents)))
            wide = views.reshape_tensor(e, e.tensor(window.source), wanted, extents)
            return _Input(wide, t.dtype, have, window.first)
        if dtype.is_bool:
            dtype, value = dtypes.INT8, e.cast_tensor(value, dtypes.BOOL, dtypes.INT8)
        wanted = TensorType(dtype, tuple(e.static_dims(extents)))
        return _Input(views.reshape_tensor(e, value, wanted, extents), t.dtype, have)

    # ---- sizes -------------------------------------------------------------------------------

    def _steps(self) -> dict[int, int]:
        """Return the extent of a workgroup along each group of the grid."""
        room = GROUP_ELEMENTS
        for g in self.groups:
            if g.reduced:
                room //= max(1, g.extent if isinstance(g.extent, int) else UNKNOWN)
        out: dict[int, int] = {}
        if not self.across:
            wanted = max(self.wide, room // self.wide * self.wide)
            out[self.lane] = self._step(self.groups[self.lane].extent, wanted, self.wide)
            room //= out[self.lane]
        for i in reversed(self.outer):
            if len(out) < 3:
                out[i] = self._step(self.groups[i].extent, max(1, room), 1)
                room //= out[i]
        return out

    @staticmethod
    def _step(extent: Extent, wanted: int, unit: int) -> int:
        """Return a step of about `wanted`, preferably one that divides the extent."""
        if not isinstance(extent, int):
            return wanted
        if extent <= wanted:
            return max(extent, 1)
        even = (d for d in range(wanted, wanted // 2, -1) if d % unit == 0 and extent % d == 0)
        return next(even, wanted)

    def _kept(self) -> _Kept | None:
        """Choose the value that is kept between passes: a costly one that two of them read."""
        form = self.form
        memo: dict[int, int] = {}
        passes = [[(t.source, form.root(full=True)) for t in level] for level in form.levels]
        passes.append([(x, form.root(full=full)) for x, _, full in form.results])
        reads: dict[int, list[int]] = {}
        nodes: dict[int, Expr] = {}
        for n, roots in enumerate(passes):
            for x, m in roots:
                self._costly_in(x, m, n, reads, nodes)
        found = [i for i, at in reads.items() if len(set(at)) > 1]
        if not found or self._is_unrolled():
            return None
        best = max(found, key=lambda i: form.level(nodes[i], memo))
        value, first = nodes[best], min(reads[best])
        for n, (x, t, full) in enumerate(form.results):
            if full and t.dtype is dtypes.FLOAT and x is not value:
                return _Kept(value, first, n)
        dims = [g.extent for g in self.groups if g.reduced]
        if not self.across:
            dims.append(self.steps[self.lane])
        fixed = tuple(d for d in dims if isinstance(d, int))
        size = 4
        for d in fixed:
            size *= d
        return (
            _Kept(value, first, None, fixed)
            if len(fixed) == len(dims) and size <= (SCRATCH_BYTES)
            else None
        )

    def _is_unrolled(self) -> bool:
        """Return whether all passes over a row are unrolled, so that they share values.

        Were a value stored and read back in one block, IREE would copy the whole tile for each row.
        """
        if any(self.groups[i].extent != 1 for i in self.inner):
            return False
        count = self.groups[self.lane].extent if self.across else 1
        if not isinstance(count, int):
            return False
        wide, rest = divmod(count, self.wide)
        return wide <= 1 and rest <= self.narrow

    def _costly_in(
        self, x: Expr, m: DimMap, n: int, reads: dict[int, list[int]], nodes: dict[int, Expr]
    ) -> None:
        """Record the costly per-element values that pass `n` reads directly."""
        form = self.form
        m = form.normal(m)
        if form.is_row(m) or isinstance(x, Total):
            return
        if is_costly(x) and m == form.root(full=True) and computed(x.type.dtype) is dtypes.FLOAT:
            reads.setdefault(id(x), []).append(n)
            nodes[id(x)] = x
            return
        inner = compose(m, x.map) if isinstance(x, View) else m
        for p in parts(x):
            self._costly_in(p, inner, n, reads, nodes)

    # ---- the dispatch ------------------------------------------------------------------------

    def workgroup(self, tile: Tile) -> Workgroup:
        return Workgroup(self, tile)

    def result_groups(self, *, full: bool) -> list[int]:
        return [i for i, g in enumerate(self.groups) if full or not g.reduced]

    def run(self) -> list[ir.Value]:
        e, form = self.e, self.form
        dims = [g.extent for g in self.groups]
        types = [t.dtype for _, t, _ in form.results]
        kept = [self.result_groups(full=full) for _, _, full in form.results]
        steps = [self.steps.get(i, 0) for i in range(len(dims))]
        inputs = [i.tensor for i in self.inputs.values()]
        nest = Nest(inputs, dims, types, steps, self.narrow, kept=kept)
        found = nest.run(lambda tile: self.workgroup(tile).run())
        out: list[ir.Value] = []
        for value, (_, t, full) in zip(found, form.results, strict=True):
            own = [d if full or i not in form.axes else 1 for i, d in enumerate(form.extents)]
            static = t.with_dims(e.static_dims(own))
            out.append(e.refine(views.reshape_tensor(e, value, static, own), t))
        return out


@dataclass
class Site:
    """The index at which values are made."""

    at: dict[int, Index]  # index in the tensors, by axis group
    local: dict[int, Index]  # index in the tile, by axis group
    lanes: int  # lanes of a vector, 0 for one element
    masked: bool = False  # vector may reach past the end
    left: Index = 0  # elements from this index to the end
    # values made at this index, by the id of an expression and its map
    memo: dict[tuple[int, DimMap], TypedScalar] = field(
        default_factory=dict[tuple[int, DimMap], TypedScalar]
    )


class Workgroup:
    """Builds the body of a workgroup."""

    def __init__(self, plan: Plan, tile: Tile) -> None:
        self.plan, self.k, self.form, self.tile = plan, tile.k, plan.form, tile
        self.inputs = dict(zip(plan.inputs, self.k.inputs, strict=True))
        self.extent = [self.k.inner(g.extent) for g in plan.groups]
        self.start, self.size = tile.start, tile.size

    def run(self) -> list[ir.Value]:
        carried, kept = list(self.tile.made), self.plan.kept
        if kept is not None and kept.tile is None:
            carried.append(self.k.empty(kept.scratch))
        return self.rows(self.plan.outer, {}, carried)[: len(self.tile.made)]

    def rows(self, left: Sequence[int], local: dict[int, Index], carried: Carried) -> Carried:
        """Loops over the kept groups, and in them the rows."""
        k, plan = self.k, self.plan
        if left:
            i, *rest = left
            return self.each(
                self.size[i], carried, lambda j, c: self.rows(rest, {**local, i: j}, c)
            )
        at = {i: k.add(self.start[i], j) for i, j in local.items()}
        if plan.across:
            return Rows(self, Site(at, local, 0)).run(carried)

        def block(j: Index, lanes: int, masked: bool, c: Carried) -> Carried:
            here = {**at, plan.lane: k.add(self.start[plan.lane], j)}
            left = k.sub(self.size[plan.lane], j)
            site = Site(here, {**local, plan.lane: j}, lanes, masked, left)
            return Rows(self, site).run(c)

        return self.sweep(self.size[plan.lane], carried, block)

    def each(
        self, count: Index, carried: Carried, body: Callable[[Index, Carried], Sequence[ir.Value]]
    ) -> Carried:
        """Build a loop over [0, count), none for a count of one."""
        if isinstance(count, int) and count == 1:
            return list(body(0, carried))
        return self.k.loop(0, count, 1, carried, body)

    def sweep(
        self,
        count: Index,
        carried: Carried,
        body: Callable[[Index, int, bool, Carried], Sequence[ir.Value]],
    ) -> Carried:
        """Run `body(j, lanes, masked, carried)` over [0, count) by wide vectors first."""
        return self.k.sweep(count, self.plan.wide, self.plan.narrow, carried, body)


class Rows:
    """Builds the passes over one row, or over as many neighbouring rows as a vector has lanes."""

    def __init__(self, group: Workgroup, row: Site) -> None:
        self.group, self.plan, self.k, self.form = group, group.plan, group.k, group.form
        self.row = row
        self.totals: dict[int, TypedScalar] = {}
        self.made_kept = False

    def run(self, carried: Carried) -> Carried:
        for n, level in enumerate(self.form.levels):
            carried = self.reduce(n, level, carried)
        return self.finish(carried)

    # ---- passes ------------------------------------------------------------------------------

    def elements(
        self,
        carried: Carried,
        body: Callable[[Site, Carried], Sequence[ir.Value]],
        sites: dict[int, Index] | None = None,
        left: Sequence[int] | None = None,
    ) -> Carried:
        """`body(site, carried)` over all elements of the row."""
        here = sites or {}
        remaining = self.plan.inner if left is None else left
        if remaining:
            i, *rest = remaining
            return self.group.each(
                self.group.extent[i],
                carried,
                lambda j, c: self.elements(c, body, {**here, i: j}, rest),
            )
        row, lane = self.row, self.plan.lane
        at, local = {**row.at, **here}, {**row.local, **here}
        if not self.plan.across:
            return list(body(Site(at, local, row.lanes, row.masked, row.left), carried))
        count = self.group.extent[lane]

        def some(j: Index, lanes: int, masked: bool, c: Carried) -> Sequence[ir.Value]:
            left = self.k.sub(count, j)
            site = Site({**at, lane: j}, {**local, lane: j}, lanes, masked, left)
            return body(site, c)

        return self.group.sweep(count, carried, some)

    def reduce(self, n: int, level: Sequence[Total], carried: Carried) -> Carried:
        """Make the totals of a level, in one pass."""
        root = self.form.root(full=True)
        for total in level:
            self.prepare(total.source, root)
        widths = [self.plan.wide, self.plan.narrow] if self.plan.across else [self.row.lanes]
        widths = list(dict.fromkeys(widths))
        accumulators = [_accumulator(self.k, t) for t in level]
        reduced = [i for i, g in enumerate(self.plan.groups) if g.reduced]
        start = [v for a in accumulators for w in widths for v in a.start(w)]

        def one(site: Site, c: Carried) -> Carried:
            held, tiles = list(c[: len(start)]), list(c[len(start) :])
            self.tiles = tiles  # values that an earlier pass kept are read from here
            position = 0
            for total, a in zip(level, accumulators, strict=True):
                x = self.value(total.source, root, site)
                tiles = self.keep(n, site, tiles)
                across = self.plan.across
                mask = (
                    compaction.inside(self.k, site.left, site.lanes)
                    if site.masked and across
                    else None
                )
                at = site.at[reduced[0]] if len(reduced) == 1 else 0
                for w in widths:
                    end = position + a.size
                    if w == site.lanes:
                        before = held[position:end]
                        held[position:end] = a.add(before, x.value, mask, at, across=across)
                    position = end
            return [*held, *tiles]

        found = self.elements([*start, *carried], one)
        position = 0
        for total, a in zip(level, accumulators, strict=True):
            held: list[list[ir.Value]] = []
            for _ in widths:
                held.append(found[position : position + a.size])
                position += a.size
            value = a.total(held, across=self.plan.across)
            if total.how == "mean":
                value = self.divided(value)
            self.totals[id(total)] = value
        if self.plan.kept is not None and self.plan.kept.first == n:
            self.made_kept = True
        return found[len(start) :]

    def divided(self, x: TypedScalar) -> TypedScalar:
        """Return a sum divided by the number of elements."""
        k, count = self.k, cast(Index, self.plan.joined)
        for g, extent in zip(self.plan.groups, self.group.extent, strict=True):
            if g.reduced:
                count = k.mul(count, extent)
        lanes = 0 if self.plan.across else self.row.lanes
        b = self.scalars(x.dtype, x.dtype, lanes)
        if isinstance(count, int):
            return b.div(x, count)
        number = arith.IndexCastOp(ir.IntegerType.get_signless(64), count).result
        divisor = arith.SIToFPOp(ir.F32Type.get(), number).result
        if lanes:
            divisor = k.broadcast(divisor, lanes)
        return b.div(x, TypedScalar(divisor, x.dtype))

    def finish(self, carried: Carried) -> Carried:
        """Store the results: those of the row, then those of each element."""
        k, form = self.k, self.form
        tiles = list(carried)
        for n, (x, t, full) in enumerate(form.results):
            if not full:
                value = self.stored(self.row_value(x, form.root(full=False)), t.dtype, self.row)
                where = [self.row.local[i] for i in self.plan.result_groups(full=False)]
                if self.row.lanes:
                    tiles[n] = k.write(value, tiles[n], where, masked=self.row.masked)
                else:
                    tiles[n] = k.put(value, tiles[n], where)
        root = form.root(full=True)
        wanted = [(n, x, t) for n, (x, t, full) in enumerate(form.results) if full]
        for _, x, _ in wanted:
            self.prepare(x, root)
        if not wanted:
            return tiles

        def one(site: Site, c: Carried) -> Carried:
            c = list(c)
            self.tiles = c
            values = [self.stored(self.value(x, root, site), t.dtype, site) for _, x, t in wanted]
            where = [site.local[i] for i in self.plan.result_groups(full=True)]
            for value, (n, _, _) in zip(values, wanted, strict=True):
                c[n] = k.write(value, c[n], where, masked=site.masked)
            return c

        return self.elements(tiles, one)

    # ---- what is kept between passes ---------------------------------------------------------

    def keep(self, n: int, site: Site, tiles: Carried) -> Carried:
        """Write the kept value where this pass has made it."""
        self.tiles = tiles
        kept = self.plan.kept
        if kept is None or kept.first != n:
            return tiles
        key = (id(kept.value), self.form.root(full=True))
        if key not in site.memo or (id(kept), ()) in site.memo:
            return tiles
        site.memo[(id(kept), ())] = site.memo[key]  # computed once per site
        i, where = self.kept_index(site)
        tiles = list(tiles)
        tiles[i] = self.k.write(site.memo[key].value, tiles[i], where, masked=site.masked)
        self.tiles = tiles
        return tiles

    def kept_index(self, site: Site) -> tuple[int, list[Index]]:
        kept, plan = self.plan.kept, self.plan
        assert kept is not None
        if kept.tile is not None:
            return kept.tile, [site.local[i] for i in plan.result_groups(full=True)]
        own = [i for i, g in enumerate(plan.groups) if g.reduced or i == plan.lane]
        return len(self.form.results), [site.local[i] for i in own]

    # ---- values ------------------------------------------------------------------------------

    def scalars(self, first: DType, out: DType, lanes: int) -> ArithScalars:
        return StoredScalars(self.k, lanes, first, out) if lanes else ArithScalars(first, out)

    def stored(self, x: TypedScalar, dtype: DType, site: Site) -> ir.Value:
        if site.lanes:
            return narrow(self.k, x, dtype, site.lanes).value
        return narrow_scalar(x, dtype).value

    def prepare(self, x: Expr, m: DimMap) -> None:
        """Compute the row-invariant parts of `x` before the loop."""
        m = self.form.normal(m)
        if isinstance(x, Splat):
            return
        if self.form.is_row(m):
            self.row_value(x, m)
            return
        if isinstance(x, Total):
            return
        inner = compose(m, x.map) if isinstance(x, View) else m
        for p in parts(x):
            self.prepare(p, inner)

    def row_value(self, x: Expr, m: DimMap) -> TypedScalar:
        return self.value(x, self.form.normal(m), self.row)

    def value(self, x: Expr, m: DimMap, site: Site) -> TypedScalar:
        """Return the value of an expression, read through a map, at a site."""
        m = self.form.normal(m)
        key = (id(x), m)
        if key not in site.memo:
            site.memo[key] = self.made(x, m, site)
        return site.memo[key]

    def made(self, x: Expr, m: DimMap, site: Site) -> TypedScalar:
        k, kept = self.k, self.plan.kept
        if isinstance(x, Splat):
            dtype = computed(x.type.dtype)
            if site.lanes:
                return TypedScalar(k.splat(x.number, site.lanes, dtype), dtype)
            return TypedScalar(k.number(x.number, dtype), dtype)
        if isinstance(x, Total):
            return self.spread(self.totals[id(x)], site.lanes)
        if site is not self.row and self.form.is_row(m):
            return self.spread(self.row_value(x, m), site.lanes)
        if kept is not None and x is kept.value and self.made_kept and site is not self.row:
            i, where = self.kept_index(site)
            held = k.read(self.tiles[i], where, site.lanes, masked=site.masked)
            return TypedScalar(held, dtypes.FLOAT)
        if isinstance(x, Leaf):
            return self.read(x, m, site)
        if isinstance(x, View):
            return self.value(x.source, compose(m, x.map), site)
        args = [self.value(a, m, site) for a in parts(x)]
        first = next((a.type.dtype for a in parts(x)), x.type.dtype)
        b = self.scalars(first, x.type.dtype, site.lanes)
        if isinstance(x, Step):
            return x.emit(k, b, args, site.lanes)
        assert isinstance(x, Compute)
        return x.computed(b, args)

    def spread(self, x: TypedScalar, lanes: int) -> TypedScalar:
        """Return a value of the row for each lane."""
        if not lanes or isinstance(x.value.type, ir.VectorType):
            return x
        return TypedScalar(self.k.broadcast(x.value, lanes), x.dtype)

    def read(self, x: Leaf, m: DimMap, site: Site) -> TypedScalar:
        k, source = self.k, self.plan.inputs[(x.value, m)]
        held = self.group.inputs[(x.value, m)]
        at = [site.at[i] for i in source.groups]
        lanes = site.lanes
        stored = dtypes.INT8 if source.dtype.is_bool else source.dtype
        if not lanes:
            found = widen_scalar(TypedScalar(k.element(held, at), stored))
        elif self.plan.lane in source.groups:
            at[-1] = k.add(at[-1], source.first)
            read = k.read(held, at, lanes, masked=site.masked)
            found = widen(k, TypedScalar(read, stored), lanes)
        else:
            one = k.broadcast(k.element(held, at), lanes)
            found = widen(k, TypedScalar(one, stored), lanes)
        if source.dtype.is_bool:
            return self.scalars(stored, stored, lanes).cmp("ne", found, 0)
        return found


def _accumulator(k: WorkgroupBuilder, total: Total) -> Accumulator:
    """Return the combiner of a reduction."""
    dtype = computed(total.source.type.dtype)
    if isinstance(total, ArgExtreme):
        return ArgAccumulator(k, total.how, dtype, last=total.last)
    return Accumulator(k, total.how, dtype)

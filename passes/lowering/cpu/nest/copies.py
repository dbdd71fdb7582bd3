"""Copies as access maps: rows are gathered, mirrored at borders, repeated, or put into a cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.indexing import Gather, GatherND
from mgx_mlir.dialects.migraphx.movement import Pad
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import AxisView, line_step
from mgx_mlir.passes.lowering.cpu.frame.epilogue import STORED
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import (
    ExprSite,
    KernelSite,
    OpSite,
    by_form,
    number_of,
)
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Nest, Tile
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View, behind_views
from mgx_mlir.passes.lowering.new_rows import NewRows
from mgx_mlir.passes.lowering.select import KernelRule, Refusal, refused

_LEAST_ROW = 8  # elements of a gathered row: shorter rows are copied one element at a time
_LEAST_SHARED = 4  # lines whose elements are gathered by the same indices, which pay for a table
_STRIP = 512  # elements of a line that are gathered by one table
_ROW_REGISTERS = 4  # vectors of a gathered row that are copied together
_MOST_REPEATS = 4  # vectors that are written for one that is read
_CACHE_ROWS = 256  # rows of a head's cache per workgroup
_WIDEST_CACHE_ROW = 256  # bytes of a cache's row that are copied by one vector


# ---- gather: an index tensor says which row --------------------------------------------------


def refusal(op: Gather | GatherND) -> str | None:
    """Return why the kernel does not take an op, None if it does."""
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    axis, picked = _axes_of(op)
    rest = t.dims[axis + picked :]
    if t.dtype.is_bool:
        return "it copies bools"
    if 0 in (*t.dims, *it.dims):
        return "it has no elements"
    if picked == 0:
        return "it copies its tensor"
    if DYN in rest or prod(rest) >= _LEAST_ROW:
        return None
    ahead = t.dims[:axis]
    if (
        isinstance(op, Gather)
        and prod(rest) == 1
        and (DYN in ahead or prod(ahead) >= _LEAST_SHARED)
    ):
        return None
    return "its rows are short"


def _axes_of(op: Gather | GatherND) -> tuple[int, int]:
    """Return the first axis that indices select on, and how many they do."""
    if isinstance(op, Gather):
        return axis_of(op.axis, TensorType.of(op.data).rank), 1
    return op.batch_dims, TensorType.of(op.indices).dims[-1]


def _match_gather(e: LoweringContext, op: Gather | GatherND) -> Refusal | None:
    reason = refusal(op)
    if number_of(op.data) is not None:
        reason = "its rows have one element"
    if (
        isinstance(op, Gather)
        and TensorType.of(op.indices).elements == 1
        and e.elements(op.indices) is not None
    ):
        reason = "one constant index is a slice"
    return refused(reason)


def _match_gather_kernel(e: LoweringContext, site: KernelSite) -> Gather | Refusal:
    """Take a kernel that is a gather alone."""
    op = site.body.operations[0]
    if len(site.members) != 2 or not isinstance(op, Gather):
        return Refusal("it is not a single gather")
    if any(v not in list(site.body.arguments) for v in (op.data, op.indices)):
        return Refusal("it gathers from a computed tensor")
    return _match_gather(e, op) or op


def _build_gather_kernel(e: LoweringContext, site: KernelSite, op: Gather) -> list[ir.Value]:
    operands: dict[ir.Value, ir.Value] = dict(
        zip(site.body.arguments, site.op.operands, strict=True)
    )
    made = _gathered(e, op, [e.tensor(operands[v]) for v in (op.data, op.indices)], site.isa)
    e.sizes.relations_of(op.operation, Gather)
    return made


def _gathered(
    e: LoweringContext, op: Gather, tensors: Sequence[ir.Value], isa: Isa
) -> list[ir.Value]:
    """Build copies of the rows behind the axis; rows of an empty axis are 0."""
    (data, indices), t, it = tensors, TensorType.of(op.data), TensorType.of(op.indices)
    axis = axis_of(op.axis, t.rank)
    view, own, counts = AxisView.of(e, data, t, axis), e.extents(data), e.extents(indices)
    (outer, extent, inner), count = view.dims, e.product(counts)
    positions = views.reshaped(e, indices, [count])
    whole = [*own[:axis], *counts, *own[axis + 1 :]]
    if isinstance(inner, int) and inner == 1:
        made = _gathered_elements(e, view, positions, t.dtype, it.dtype, isa)
    else:
        rows = _Rows(view.tensor, positions, [outer, count, inner], [extent], it.dtype)
        made = rows.copied(t.dtype, isa, lambda outer, row: [[row]])
    return [e.refine(views.reshaped(e, made, whole), TensorType.of(op.out))]


def _gathered_by_tuples(
    e: LoweringContext, op: GatherND, tensors: Sequence[ir.Value], isa: Isa
) -> list[ir.Value]:
    """Build copies of the rows behind the axes that tuples select on; batch axes are ahead."""
    (data, indices), t, it = tensors, TensorType.of(op.data), TensorType.of(op.indices)
    (axis, picked), own, counts = _axes_of(op), e.extents(data), e.extents(indices)
    batch = [a if isinstance(a, int) else b for a, b in zip(own[:axis], counts, strict=False)]
    between, behind = own[axis : axis + picked], own[axis + picked :]
    dims = [e.product(batch), e.product(counts[axis:-1]), e.product(behind)]
    rows = _Rows(
        views.reshaped(e, data, [dims[0], *between, dims[2]]),
        views.reshaped(e, indices, [*dims[:2], picked]), dims, between, it.dtype,
    )  # fmt: skip
    made = rows.copied(t.dtype, isa, lambda outer, row: [[outer, row, i] for i in range(picked)])
    whole = [*batch, *counts[axis:-1], *behind]
    return [e.refine(views.reshaped(e, made, whole), TensorType.of(op.out))]


@dataclass(frozen=True)
class _Rows:
    """Rows of `source`, [outer, *picked, inner], that numbers of `positions` select."""

    source: ir.Value
    positions: ir.Value
    dims: Sequence[Extent]  # extents of the result: outer, count, inner
    picked: Sequence[Extent]
    kind: DType  # type of `positions`

    def copied(
        self, dtype: DType, isa: Isa, places: Callable[[Index, Index], Sequence[Sequence[Index]]]
    ) -> ir.Value:
        """Build the copies; places(outer, row): where the numbers of a row are.

        Rows of an empty axis are 0.
        """

        def body(tile: Tile) -> list[ir.Value]:
            k, lengths = tile.k, [tile.k.inner(d) for d in self.picked]

            def line(row: Line) -> list[ir.Value]:
                outer, number = row.at
                found = [k.element(k.inputs[1], at) for at in places(outer, number)]
                where = [
                    index.normalized(k, v, length, self.kind)
                    for v, length in zip(found, lengths, strict=True)
                ]
                copy = lambda: row.copied(  # noqa: E731
                    k.inputs[0], [outer, *where], registers=_ROW_REGISTERS
                )
                return row.unless_empty(lengths, copy)

            return tile.lines(line)

        _, count, inner = self.dims
        nest = Nest(
            [self.source, self.positions], self.dims, [dtype], (1, line_step(count, inner)),
            isa.lanes_of(dtype), self.picked,
        )  # fmt: skip
        return nest.run(body)[0]


def _gathered_elements(
    e: LoweringContext, view: AxisView, positions: ir.Value, dtype: DType, kind: DType, isa: Isa
) -> ir.Value:
    """Build lines [outer, count] of single elements; a table has the indices that all lines use."""
    (outer, extent, _), count, lanes = view.dims, e.extent(positions, 0), isa.lanes

    def body(tile: Tile) -> list[ir.Value]:
        k, length, wanted = tile.k, tile.k.inner(extent), tile.size[1]
        source, numbers = k.inputs

        def strip(start: Index, made: list[ir.Value]) -> list[ir.Value]:
            own = k.min(_STRIP, k.sub(wanted, start))

            def position(i: Index, c: list[ir.Value]) -> list[ir.Value]:
                # elements past the last one are read, too
                number = k.element(numbers, [k.min(k.add(start, i), k.sub(wanted, 1))])
                at = index.normalized(k, number, length, kind)
                return [k.put(index.as_i64(k, at), c[0], [i])]

            filled = k.mul(k.div(k.add(own, lanes - 1), lanes), lanes)
            (table,) = k.loop(0, filled, 1, [k.empty((_STRIP,), dtypes.INT64)], position)

            def line(row: Line) -> list[ir.Value]:
                def part(j: Index, lanes: int, masked: bool) -> list[ir.Value]:
                    found: list[ir.Value] = []
                    for n in range(lanes):
                        at = index.to_index(k.element(table, [k.add(j, n)]), dtypes.INT64)
                        found.append(k.element(source, [row.at[0], at, 0]))
                    return [vector.FromElementsOp(k.vector_type(lanes, dtype), found).result]

                return row.unless_empty([length], lambda: row.vectors(part, to=start, count=own))

            return replace(tile, made=made).lines(line)

        return k.each(0, wanted, _STRIP, list(tile.made), strip)

    nest = Nest(
        [view.tensor, positions], [outer, count], [dtype], (line_step(outer, count),), lanes,
        [extent],
    )  # fmt: skip
    return nest.run(body)[0]


GATHER_KERNEL = KernelRule("gather_kernel", (), _match_gather_kernel, _build_gather_kernel)
GATHER = KernelRule(
    "gather", (Gather,), lambda e, site: _match_gather(e, site.op),
    lambda e, site, _: _gathered(e, site.op, site.tensors, site.isa),
)  # fmt: skip
GATHER_BY_TUPLES = KernelRule(
    "gather_by_tuples", (GatherND,), lambda e, site: _match_gather(e, site.op),
    lambda e, site, _: _gathered_by_tuples(e, site.op, site.tensors, site.isa),
)  # fmt: skip


# ---- pad: rows and columns mirror or repeat at the border ------------------------------------


def _refused_pad(op: Pad) -> str | None:
    """Return why the kernel does not take an op, None if it does."""
    t = TensorType.of(op.input)
    if op.mode == "constant":
        return "its padding is constant"
    if t.dtype.is_bool or 0 in t.dims:
        return "it copies bools, or has no elements"
    padded = _padded(op)
    if not padded or padded[-1] - padded[0] > 1:
        return "the axes are not next to each other"
    return None


def _padded(op: Pad) -> list[int]:
    rank = len(op.pads) // 2
    return [i for i in range(rank) if op.pads[i] or op.pads[rank + i]]


def _bordered(e: LoweringContext, site: OpSite, _: None) -> list[ir.Value]:
    """Build copies of rows, each between its border columns; the border of an empty row is 0.

    Rows and columns are two adjacent axes, or one. Inner dims, usually channels, are copied along.
    """
    op: Pad = site.op
    t, own, padded = TensorType.of(op.input), e.extents(site.first), _padded(op)
    first, last = padded[0], padded[-1]
    before, after = op.pads[: t.rank], op.pads[t.rank :]
    wanted = [e.add(d, p + q) for d, p, q in zip(own, before, after, strict=True)]
    outer, inner = e.product(own[:first]), e.product(own[last + 1 :])
    rows, above, below = own[first], before[first], after[first]
    if first == last:  # all outer dims are rows
        outer, rows, above, below = 1, outer, 0, 0
    left, right = before[last], after[last]
    source_dims = [outer, rows, e.mul(own[last], inner)]
    dims = [outer, e.add(rows, above + below), e.mul(wanted[last], inner)]

    def body(tile: Tile) -> list[ir.Value]:
        k = tile.k
        height, width, each, length = map(k.inner, (rows, own[last], inner, source_dims[2]))

        def position(at: Index, extent: Index) -> Index:
            edge = index.last_of(k, extent)
            at = index.mirrored(k, at, edge) if op.mode == "reflect" else at
            return index.clamp(k, at, 0, edge)

        def line(row: Line) -> list[ir.Value]:
            image, at = row.at
            where = [image, at if first == last else position(k.sub(at, above), height)]

            def column(number: Index, to: Index, c: list[ir.Value]) -> list[ir.Value]:
                begin = k.mul(position(number, width), each)
                if isinstance(each, int) and each == 1:
                    value = k.element(k.inputs[0], [*where, begin])
                    return [k.put(value, c[0], [*row.local, to])]
                return row.after(c).copied(
                    k.inputs[0], where, begin, to=k.mul(to, each), count=each
                )

            def whole() -> list[ir.Value]:
                made = k.loop(0, left, 1, row.made, lambda j, c: column(k.sub(j, left), j, c))
                made = row.after(made).copied(
                    k.inputs[0], where, to=k.mul(left, each), count=length
                )
                behind = k.add(width, left)
                return k.loop(
                    0, right, 1, made, lambda j, c: column(k.add(width, j), k.add(behind, j), c)
                )

            return row.unless_empty([height, width], whole)

        return tile.lines(line)

    source = views.reshaped(e, site.first, source_dims)
    steps, others = (1, line_step(dims[1], dims[2])), [*source_dims, own[last], inner]
    nest = Nest([source], dims, [t.dtype], steps, site.isa.lanes_of(t.dtype), others)
    return [e.refine(views.reshaped(e, nest.run(body)[0], wanted), TensorType.of(op.out))]


BORDER = KernelRule("border", (Pad,), by_form(_refused_pad), _bordered)


# ---- repeat: a view that reads elements, or rows of them, several times -----------------------


@dataclass(frozen=True)
class _Repeat:
    """A view whose dims are its source's, in order, or repeat them."""

    x: View
    source: Leaf
    kept: list[tuple[Extent, int]]  # extents of the source, and the view's dims that index them

    def line(self, k: WorkgroupBuilder, at: Sequence[Index]) -> Index:
        """Return the source's line number for an index of the view."""
        where: Index = 0
        for d, i in self.kept[:-1]:
            where = k.add(k.mul(where, k.inner(d)), at[i])
        return where

    def flat(self, e: LoweringContext) -> ir.Value:
        """Return the source as lines."""
        dims = [d for d, _ in self.kept]
        return views.reshaped(e, self.source.value, [e.product(dims[:-1]), dims[-1]])

    def nest(self, e: LoweringContext, columns: Extent, lanes: int) -> Nest:
        """Return the loops over lines of `columns` elements."""
        rows = e.product(self.lead)
        others = [*self.x.extents, *(d for d, _ in self.kept)]
        steps = (line_step(rows, columns),)
        return Nest([self.flat(e)], [rows, columns], [self.source.type.dtype], steps, lanes, others)

    @property
    def lead(self) -> list[Extent]:
        """Extents of the view ahead of the dim that holds the source's lines."""
        return list(self.x.extents[: self.kept[-1][1]])


def _match_repeat(e: LoweringContext, site: ExprSite) -> _Repeat | Refusal:
    """Take a view whose last dim repeats each element of the dim before it 2 to 4 times.

    Outer dims are the source's, in its order, or repeat as well.
    """
    found = _repeat_of(e, site.x)
    if isinstance(found, Refusal):
        return found
    times = found.x.extents[-1]
    if not isinstance(times, int) or not 2 <= times <= _MOST_REPEATS:
        return Refusal(f"its last dim repeats nothing 2 to {_MOST_REPEATS} times")
    if found.kept[-1][1] != found.x.type.rank - 2:
        return Refusal("its last dim does not repeat single elements")
    return found


def _match_spread(e: LoweringContext, site: ExprSite) -> _Repeat | Refusal:
    """Take a view that repeats rows: its last dim is the source's."""
    found = _repeat_of(e, site.x)
    if isinstance(found, Refusal):
        return found
    row, at = found.kept[-1]
    if at != found.x.type.rank - 1:
        return Refusal("its last dim repeats elements")
    if len(found.kept) == found.x.type.rank:
        return Refusal("it repeats nothing")
    if isinstance(row, int) and row < _LEAST_ROW:
        return Refusal("its rows are short")
    return found


def _repeat_of(e: LoweringContext, x: Expr) -> _Repeat | Refusal:
    if not isinstance(x, View):
        return Refusal("it is no view")
    (source, reads), rank = behind_views(x), x.type.rank
    if not isinstance(source, Leaf) or source.type.dtype not in STORED or rank < 2:
        return Refusal(f"it is computed, or {x.type} is not held by vectors")
    kept = [(d, i) for d, i in zip(e.extents(source.value), reads, strict=True) if i is not None]
    at = [i for _, i in kept]
    if at != sorted(set(at)) or not at or 0 in x.extents:
        return Refusal("it is a transpose, or has no elements")
    return _Repeat(x, source, kept)


def _repeated(e: LoweringContext, site: ExprSite, plan: _Repeat) -> list[ir.Value]:
    """Build a shuffle of each vector that is read."""
    x, lanes, times = plan.x, site.isa.lanes, plan.x.extents[-1]
    assert isinstance(times, int)
    lead, count = plan.lead, x.extents[-2]
    order = [i // times for i in range(lanes * times)]

    def body(tile: Tile) -> list[ir.Value]:
        k = tile.k

        def line(row: Line) -> list[ir.Value]:
            where = plan.line(k, k.coordinates(row.at[0], lead))

            def some(j: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
                v = k.read(k.inputs[0], [where, j], lanes, masked=masked)
                v = vector.ShuffleOp(v, v, order).result
                return row.after(c).write([v], k.mul(j, times), masked=masked)

            return k.along(k.inner(count), lanes, row.made, some)

        return tile.lines(line)

    made = plan.nest(e, e.mul(count, times), lanes).run(body)[0]
    return [e.refine(views.reshaped(e, made, x.extents), x.type)]


def _spread(e: LoweringContext, site: ExprSite, plan: _Repeat) -> list[ir.Value]:
    """Build copies of the rows."""
    lanes, lead = site.isa.lanes_of(plan.source.type.dtype), plan.lead

    def body(tile: Tile) -> list[ir.Value]:
        k = tile.k

        def line(row: Line) -> list[ir.Value]:
            where = [plan.line(k, k.coordinates(row.at[0], lead))]
            return row.copied(k.inputs[0], where, registers=_ROW_REGISTERS)

        return tile.lines(line)

    made = plan.nest(e, plan.x.extents[-1], lanes).run(body)[0]
    return [e.refine(views.reshaped(e, made, plan.x.extents), plan.x.type)]


REPEAT = KernelRule("repeat", (), _match_repeat, _repeated)
SPREAD = KernelRule("spread", (), _match_spread, _spread)


# ---- a broadcast: which extents are 1 is known only at run time ---------------------------------


def broadcast(
    e: LoweringContext, x: ir.Value, dtype: DType, wanted: Sequence[Extent],
    unsure: Collection[int], isa: Isa,
) -> ir.Value | None:  # fmt: skip
    """Return `x` broadcast to `wanted` extents, of which those at `unsure` may be 1 in `x`.

    None for a type that vectors do not hold. The caller has checked that extents are equal or 1.
    """
    have = e.extents(x)
    if dtype not in STORED or not have:
        return None
    rows, last = e.product(wanted[:-1]), wanted[-1]

    def body(tile: Tile) -> list[ir.Value]:
        k, (source,) = tile.k, tile.k.inputs
        own, kinds = list(map(k.inner, have)), [v.type for v in tile.made]
        strides: list[Index] = []
        for i, d in enumerate(own[:-1]):
            stride = k.product(own[i + 1 :])
            if i in unsure:
                stride = index.select(k, k.is_equal(d, 1), 0, stride)
            strides.append(0 if d == 1 else stride)
        is_one = k.is_equal(own[-1], 1) if len(own) - 1 in unsure else None
        # extents are the result's or 1, so equal element counts mean equal extents
        is_same = k.is_equal(k.product(own), k.product(list(map(k.inner, wanted))))

        def same(row: Line) -> list[ir.Value]:
            return row.copied(source, [], k.mul(row.at[0], row.length))

        def line(row: Line) -> list[ir.Value]:
            at = k.coordinates(row.at[0], wanted[:-1])
            begin = k.add(0, *(k.mul(i, n) for i, n in zip(at, strides, strict=True)))
            copied: Callable[[], list[ir.Value]] = lambda: row.copied(source, [], begin)  # noqa: E731
            if is_one is None:
                return copied()
            filled: Callable[[], list[ir.Value]] = lambda: row.filled(k.element(source, [begin]))  # noqa: E731
            return k.when(is_one, filled, copied, kinds)

        return k.when(is_same, lambda: tile.lines(same), lambda: tile.lines(line), kinds)

    flat = views.reshaped(e, x, [e.product(have)])
    steps, others = (line_step(rows, last),), [*have, *wanted]
    made = Nest([flat], [rows, last], [dtype], steps, isa.lanes, others).run(body)
    return views.reshaped(e, made[0], wanted)


# ---- a cache: old rows, zeros, and new rows from where the lengths say -----------------------


def cache_rows(
    e: LoweringContext, t: TensorType, new_rows: NewRows, tensors: tuple[ir.Value, ir.Value],
    counts: TensorType, longest: Extent, isa: Isa,
) -> ir.Value | None:  # fmt: skip
    """Return `past` of `longest` rows with new ones; None where it has no vector loops.

    t: the type of the result. new_rows: without angles. tensors: seqlens, past. counts: the type of
    seqlens.
    """
    own, new = e.extents(tensors[1]), new_rows.extents(e)
    if t.dtype is dtypes.BOOL or 0 in (*own[:2], own[3], *new, longest):
        return None
    lanes, size = isa.lanes_of(t.dtype), own[3]
    if isinstance(size, int) and size * t.dtype.size <= _WIDEST_CACHE_ROW:
        lanes = size

    def body(tile: Tile) -> list[ir.Value]:
        k, (batch, head, start, _), rows = tile.k, tile.start, tile.size[2]
        source, lengths, cache = k.inputs
        old, count = k.inner(own[2]), k.inner(new[2])

        def some(
            c: Sequence[ir.Value], low: Index, high: Index, line: Callable[[Line], list[ir.Value]]
        ) -> list[ir.Value]:
            """Return the tile with the lines [low, high) written."""
            return k.loop(
                low, high, 1, c,
                lambda i, c: line(Line(k, tile, [batch, head, k.add(start, i)], [0, 0, i], c)),
            )  # fmt: skip

        kept = k.max(0, k.min(rows, k.sub(old, start)))
        made = some(tile.made, 0, kept, lambda row: row.copied(cache, row.at))
        made = some(made, kept, rows, lambda row: row.filled(k.number(0, t.dtype)))
        first = k.sub(index.first_new_row(k, lengths, counts, batch, count), start)
        low, high = (k.max(0, k.min(rows, i)) for i in (first, k.add(first, count)))

        def added(row: Line) -> list[ir.Value]:
            return row.copied(source, new_rows.place(batch, head, k.sub(row.local[2], first)))

        return some(made, low, high, added)

    dims = [*own[:2], longest, size]
    nest = Nest([new_rows.x, *tensors], dims, [t.dtype], (1, 1, _CACHE_ROWS), lanes, [own[2], *new])
    return nest.run(body)[0]

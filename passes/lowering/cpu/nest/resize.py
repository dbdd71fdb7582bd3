"""Linear resizing as one CPU kernel, over one or two adjacent axes, dynamic or static.

If the last axis is resized, each input row is resized along it once, and kept for the result rows
that interpolate between two such rows. If dims follow the resized axes, usually channels, vectors
lie along those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import line_step
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.sites import OpSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.nest.nest import Nest, Tile
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.resize_axes import Axis, axes_of, coordinate
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar
from mgx_mlir.passes.lowering.scalar import widen as widen_scalar
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_FLOAT, _INT32, _INT64 = dtypes.FLOAT, dtypes.INT32, dtypes.INT64
_STORED = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16)
STRIP = 512  # columns of the result that are computed together


def refusal(op: Resize) -> str | None:
    """Return why the kernel does not take an op, None if it may."""
    t = TensorType.of(op.input)
    if op.mode != "linear" or op.antialias or op.exclude_outside or op.roi:
        return "it is not linear, or interpolates more than two elements"
    if t.dtype not in _STORED:
        return f"it resizes {t.dtype}"
    return "it has no elements" if 0 in (*t.dims, *TensorType.of(op.out).dims) else None


def match(e: LoweringContext, site: OpSite) -> list[Axis] | Refusal:
    """Take a linear resize of one axis, or of two next to each other."""
    op: Resize = site.op
    reason = refusal(op)
    if reason is not None:
        return Refusal(reason)
    target = site.operands[1]
    assert target is None or isinstance(target, ir.Value)
    axes = axes_of(op, (site.first, target), e)
    changed = _changed(axes)
    if any(a.given is not None or 0 in (a.length, a.extent) for a in axes):
        return Refusal("its scales are known at run time, or it has no elements")
    if not changed or changed[-1] - changed[0] > 1:
        return Refusal("the resized axes are not adjacent")
    return axes


def _changed(axes: Sequence[Axis]) -> list[int]:
    """Return which axes get another extent."""
    return [i for i, a in enumerate(axes) if not a.unchanged()]


def build(e: LoweringContext, site: OpSite, axes: list[Axis]) -> list[ir.Value]:
    """Build the weighted sums of neighbours along the resized axes."""
    op, x, isa = site.op, site.first, site.isa
    t, lengths, changed = TensorType.of(op.input), [a.length for a in axes], _changed(axes)
    first, last = changed[0], changed[-1]
    lead = e.product(lengths[:first])
    one: Extent = 1
    if first == last:  # rows are whatever comes ahead
        rows, lead, above = Axis(lead, lead, None), one, None
    else:
        rows, above = axes[first], first
    inner = e.product(lengths[last + 1 :])
    dims = [lead, rows.length, axes[last].length]
    found = [lead, rows.extent, axes[last].extent]
    if not (isinstance(inner, int) and inner == 1):
        dims, found = [*dims, inner], [*found, inner]
    source = views.reshaped(e, x, dims)
    form = _Form(op, rows, above, axes[last], last)

    def body(tile: Tile) -> list[ir.Value]:
        return [(_Planes if len(dims) == 3 else _Channels)(tile, form).run()]

    steps = (1, line_step(rows.extent, e.product(found[2:])))
    made = Nest([source], found, [t.dtype], steps, isa.lanes, dims).run(body)
    result = views.reshaped(e, made[0], [a.extent for a in axes])
    return [e.refine(result, TensorType.of(op.out))]


RULE = KernelRule("linear_resize", (Resize,), match, build)


@dataclass(frozen=True)
class _Form:
    """rows, columns: the axes. above, along: which dims of the op they are; above None: rows stay
    as they are."""

    op: Resize
    rows: Axis
    above: int | None
    columns: Axis
    along: int


@dataclass(frozen=True)
class _Pair:
    """Two indices of the input along an axis, and the weights of their elements: f32 scalars."""

    low: Index
    high: Index
    first: ir.Value
    second: ir.Value


class _Rows:
    """Indices and weights, which both forms have."""

    def __init__(self, tile: Tile, form: _Form) -> None:
        self.k, self.form, self.lanes = tile.k, form, tile.lanes
        (self.tile,), self.height = tile.made, tile.size[1]
        self.source, self.dtype = tile.k.inputs[0], TensorType.of(self.tile).dtype
        self.b = ArithScalars(_FLOAT, _FLOAT)
        self.rows, self.columns = map(self.inner, (form.rows, form.columns))

    def inner(self, a: Axis) -> Axis:
        """Return an axis as the kernel knows it."""
        return replace(a, length=self.k.inner(a.length), extent=self.k.inner(a.extent))

    def number(self, x: Extent) -> TypedScalar:
        """Return an index as f32."""
        wide = ir.IntegerType.get_signless(64)
        whole = arith.IndexCastOp(wide, self.k.index(x)).result
        return self.b.cast(TypedScalar(whole, _INT64), _FLOAT)

    def pair(self, axis: Axis, dim: int, position: Index) -> _Pair:
        """Return the two elements that an index of the result is made of along an axis."""
        k, b = self.k, self.b
        at = coordinate(self.form.op, axis, dim, position, self.number)
        below = b.floor(at)
        second = b.sub(at, below)
        low = arith.IndexCastOp(ir.IndexType.get(), b.cast(below, _INT64).value).result
        last = k.sub(axis.length, 1)
        ends = [k.max(k.min(i, last), 0) for i in (low, k.add(low, 1))]
        return _Pair(ends[0], ends[1], b.sub(1.0, second).value, second.value)

    def weighed(self, a: ir.Value, b: ir.Value, first: ir.Value, second: ir.Value) -> ir.Value:
        """Return a * first + b * second."""
        return self.k.fma(a, first, arith.MulFOp(b, second).result)

    def stored(self, x: ir.Value, tile: ir.Value, at: Sequence[Index], *, masked: bool) -> ir.Value:
        """Return the tile with a vector of f32."""
        value = narrow(self.k, TypedScalar(x, _FLOAT), self.dtype, self.lanes).value
        return self.k.write(value, tile, at, masked=masked)


class _Planes(_Rows):
    """Resizes along the last dim: [planes, rows, columns]."""

    def run(self) -> ir.Value:
        k, count = self.k, self.columns.extent
        if isinstance(count, int) and count <= STRIP:
            return self.strip(0, count, self.tile)
        return k.loop(
            0, count, STRIP, [self.tile],
            lambda at, c: [self.strip(at, k.min(STRIP, k.sub(count, at)), c[0])],
        )[0]  # fmt: skip

    def strip(self, start: Index, count: Index, tile: ir.Value) -> ir.Value:
        """Return the tile with `count` columns from `start` on."""
        k = self.k

        def position(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            low, high, first, second = carried
            p = self.pair(self.columns, self.form.along, k.add(start, i))
            return [
                k.put(self.narrowed(p.low), low, [i]),
                k.put(self.narrowed(p.high), high, [i]),
                k.put(p.first, first, [i]),
                k.put(p.second, second, [i]),
            ]

        # indices past the last column are inside of the input too
        room = -(-count // self.lanes) * self.lanes if isinstance(count, int) else STRIP
        whole = k.mul(k.div(k.add(count, self.lanes - 1), self.lanes), self.lanes)
        kinds = (_INT32, _INT32, _FLOAT, _FLOAT)
        table = k.loop(0, whole, 1, [k.empty((room,), d) for d in kinds], position)
        if self.form.above is None:
            return k.loop(
                0, self.height, 1, [tile],
                lambda i, c: [self.along(table, k.add(k.at[1], i), count, c[0], [0, i], start)],
            )[0]  # fmt: skip
        lines = k.empty((2, room))
        none = k.index(-1)
        return k.loop(
            0, self.height, 1, [tile, lines, none, none],
            lambda i, c: self.row(table, i, start, count, c),
        )[0]  # fmt: skip

    def narrowed(self, i: Index) -> ir.Value:
        return arith.IndexCastOp(ir.IntegerType.get_signless(32), self.k.index(i)).result

    def row(
        self, table: Sequence[ir.Value], i: Index, start: Index, count: Index,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the tile with its row `i`, and the two resized rows of the input that it read.

        The two rows are in slots: the even one first.
        """
        k, lanes, above = self.k, self.lanes, self.form.above
        assert above is not None
        tile, lines, *have = carried
        p = self.pair(self.rows, above, k.add(k.at[1], i))
        slots: list[Index] = []
        for r in (p.low, p.high):
            slot = k.rem(r, 2)
            even = k.is_equal(slot, 0)
            held = arith.SelectOp(even, have[0], have[1]).result
            kept = lines
            lines = k.when(
                k.is_equal(held, r),
                lambda kept=kept: [kept],
                lambda kept=kept, r=r, slot=slot: [self.along(table, r, count, kept, [slot], 0)],
                [lines.type],
            )[0]
            have = [
                arith.SelectOp(even, k.index(r), have[0]).result,
                arith.SelectOp(even, have[1], k.index(r)).result,
            ]
            slots.append(slot)
        first, second = k.broadcast(p.first, lanes), k.broadcast(p.second, lanes)
        now = lines

        def some(j: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            a, b = (k.read(now, [slot, j], lanes) for slot in slots)
            found = self.weighed(a, b, first, second)
            return [self.stored(found, c[0], [0, i, k.add(start, j)], masked=masked)]

        return [k.along(count, lanes, [tile], some)[0], lines, *have]

    def along(
        self, table: Sequence[ir.Value], row: Index, count: Index, into: ir.Value,
        at: Sequence[Index], start: Index,
    ) -> ir.Value:  # fmt: skip
        """Return `into` with a row of the input, resized along itself."""
        k, lanes = self.k, self.lanes
        low, high, first, second = table
        final = into.type == self.tile.type

        def gathered(positions: ir.Value, j: Index) -> ir.Value:
            found: list[ir.Value] = []
            for n in range(lanes):
                position = k.element(positions, [k.add(j, n)])
                position = arith.IndexCastOp(ir.IndexType.get(), position).result
                one = k.element(self.source, [k.at[0], row, position])
                found.append(widen_scalar(TypedScalar(one, self.dtype)).value)
            return vector.FromElementsOp(k.vector_type(lanes), found).result

        def some(j: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            weights = [k.read(w, [j], lanes) for w in (first, second)]
            found = self.weighed(gathered(low, j), gathered(high, j), weights[0], weights[1])
            if final:
                return [self.stored(found, c[0], [*at, k.add(start, j)], masked=masked)]
            return [k.write(found, c[0], [*at, j])]

        return k.along(count, lanes, [into], some)[0]


class _Channels(_Rows):
    """Resizes ahead of the last dim: [planes, rows, columns, channels]."""

    def run(self) -> ir.Value:
        k, form = self.k, self.form

        def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            here = k.add(k.at[1], i)
            above = None if form.above is None else self.pair(self.rows, form.above, here)
            return k.loop(
                0, self.columns.extent, 1, carried,
                lambda j, c: self.pixel(here, above, i, j, c[0]),
            )  # fmt: skip

        return k.loop(0, self.height, 1, [self.tile], row)[0]

    def pixel(
        self, here: Index, above: _Pair | None, i: Index, j: Index, tile: ir.Value
    ) -> list[ir.Value]:
        """Return the tile with all channels of a pixel."""
        k, lanes = self.k, self.lanes
        beside = self.pair(self.columns, self.form.along, j)
        whole: Callable[[ir.Value], ir.Value] = lambda x: k.broadcast(x, lanes)  # noqa: E731

        def some(n: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            def read(row: Index, column: Index) -> ir.Value:
                at = [k.at[0], row, column, n]
                x = k.read(self.source, at, lanes, masked=masked)
                return widen(k, TypedScalar(x, self.dtype), lanes).value

            def line(row: Index) -> ir.Value:
                return self.weighed(
                    read(row, beside.low), read(row, beside.high),
                    whole(beside.first), whole(beside.second),
                )  # fmt: skip

            if above is None:
                found = line(here)
            else:
                found = self.weighed(
                    line(above.low), line(above.high), whole(above.first), whole(above.second)
                )
            return [self.stored(found, c[0], [0, i, j, n], masked=masked)]

        return k.along(k.dims[0][3], lanes, [tile], some)

"""Running sums as one CPU kernel: along the vectors by shuffles, or over the rows between them."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir, vector
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.reduce import PrefixScanSum
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import AxisView
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Nest, Tile
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed
from mgx_mlir.passes.lowering.select import KernelRule

_TYPES = (
    dtypes.FLOAT,
    dtypes.DOUBLE,
    dtypes.HALF,
    dtypes.BF16,
    dtypes.INT32,
    dtypes.INT64,
    dtypes.UINT32,
    dtypes.UINT64,
)


def refusal(op: PrefixScanSum) -> str | None:
    """Return why no vector kernel computes a running sum, None if one does."""
    t = TensorType.of(op.input)
    if t.dtype not in _TYPES:
        return f"it sums {t.dtype}"
    return "it has no elements" if 0 in t.dims else None


def build(e: LoweringContext, op: PrefixScanSum, x: ir.Value, isa: Isa) -> list[ir.Value]:
    """Build the running sums along one axis."""
    t = TensorType.of(op.input)
    view = AxisView.of(e, x, t, axis_of(op.axis, t.rank))
    steps = [step for _, step in view.grid(8 * isa.lanes)]

    def body(tile: Tile) -> list[ir.Value]:
        k, (source,), count = tile.k, tile.k.inputs, tile.size[1]
        if view.is_last:
            lines, scan = k.collapse(source, [[0], [1, 2]]), _Scan(k, op, t, isa.lanes, count)
            return tile.lines(lambda n: [scan.row(lines, n.at[0], n.made[0], n.local[0])])

        def columns(
            i: Index, j: Index, lanes: int, masked: bool, c: list[ir.Value]
        ) -> list[ir.Value]:
            at = (k.add(tile.start[0], i), k.add(tile.start[2], j))
            scan = _Scan(k, op, t, lanes, count)
            return [scan.columns(source, at, c[0], (i, j), masked=masked)]

        def row(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return k.sweep(
                tile.size[2], 8 * isa.lanes, isa.lanes, carried,
                lambda j, lanes, masked, c: columns(i, j, lanes, masked, c),
            )  # fmt: skip

        return k.loop(0, tile.size[0], 1, tile.made, row)

    dims = view.dims[:2] if view.is_last else view.dims
    steps = steps if view.is_last else [steps[0], 0, steps[1]]
    nest = Nest([view.tensor], dims, [t.dtype], steps, isa.lanes, view.dims)
    return [view.restored(e, nest.run(body)[0], TensorType.of(op.out), view.dims[1])]


RULE = KernelRule(
    "prefix_scan", (PrefixScanSum,), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.first, site.isa),
)  # fmt: skip


class _Scan:
    """Builds the loops of one op over `count` elements."""

    def __init__(
        self, k: WorkgroupBuilder, op: PrefixScanSum, t: TensorType, lanes: int, count: Index
    ) -> None:
        self.k, self.lanes, self.count = k, lanes, count
        self.stored, self.dtype = t.dtype, computed(t.dtype)
        self.exclusive, self.reverse = op.exclusive, op.reverse
        self.b = StoredScalars(k, lanes, self.dtype, self.dtype)

    def add(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.add(TypedScalar(x, self.dtype), TypedScalar(y, self.dtype)).value

    def read(self, source: ir.Value, at: list[Index], *, masked: bool) -> ir.Value:
        found = self.k.read(source, at, self.lanes, masked=masked)
        return widen(self.k, TypedScalar(found, self.stored), self.lanes).value

    def write(self, x: ir.Value, into: ir.Value, at: list[Index], *, masked: bool) -> ir.Value:
        value = narrow(self.k, TypedScalar(x, self.dtype), self.stored, self.lanes).value
        return self.k.write(value, into, at, masked=masked)

    def columns(
        self,
        source: ir.Value,
        at: tuple[Index, Index],
        into: ir.Value,
        local: tuple[Index, Index],
        *,
        masked: bool,
    ) -> ir.Value:
        """Sum along the middle dim: a vector holds neighbouring columns."""
        k = self.k

        def step(n: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            total, made = carried
            j = k.sub(k.sub(self.count, 1), n) if self.reverse else n
            x = self.read(source, [at[0], j, at[1]], masked=masked)
            after = self.add(total, x)
            shown = total if self.exclusive else after
            return [after, self.write(shown, made, [local[0], j, local[1]], masked=masked)]

        zero = k.splat(0, self.lanes, self.dtype)
        return k.loop(0, self.count, 1, [zero, into], step)[1]

    def row(self, source: ir.Value, i: Index, into: ir.Value, local: Index) -> ir.Value:
        """Sum along a row, a vector at a time: inside it by shuffles, plus the sum so far."""
        k, lanes = self.k, self.lanes
        zero = k.splat(0, lanes, self.dtype)
        whole = k.sub(self.count, k.rem(self.count, lanes))

        def step(j: Index, masked: bool, carried: list[ir.Value]) -> list[ir.Value]:
            total, made = carried
            x = self.read(source, [i, j], masked=masked)
            within, distance = x, 1
            while distance < lanes:
                within = self.add(within, self.moved(within, zero, distance))
                distance *= 2
            end = 0 if self.reverse else lanes - 1
            shown = self.moved(within, zero, 1) if self.exclusive else within
            made = self.write(self.add(total, shown), made, [local, j], masked=masked)
            last = k.broadcast(vector.ExtractOp(within, [], [end]).result, lanes)
            return [self.add(total, last), made]

        carried = [zero, into]
        if not self.reverse:
            return k.along(self.count, lanes, carried, step)[1]

        def rest(c: list[ir.Value]) -> list[ir.Value]:
            return step(whole, True, c)

        if isinstance(self.count, int):
            carried = rest(carried) if self.count % lanes else carried
        else:
            kinds = [v.type for v in carried]
            first = list(carried)
            carried = k.when(
                k.is_less(whole, self.count), lambda: rest(first), lambda: first, kinds
            )
        if whole == 0:
            return carried[1]
        return k.loop(
            0, whole, lanes, carried,
            lambda n, c: step(k.sub(k.sub(whole, lanes), n), False, list(c)),
        )[1]  # fmt: skip

    def moved(self, x: ir.Value, zero: ir.Value, distance: int) -> ir.Value:
        """Return a vector shifted up by `distance` lanes, with zeros at the start."""
        lanes, shift = self.lanes, -distance if self.reverse else distance
        lane = [i - shift for i in range(lanes)]
        # lanes of `zero` are numbered after those of `x`
        return vector.ShuffleOp(x, zero, [i if 0 <= i < lanes else lanes for i in lane]).result

"""The k best of each row as one CPU kernel: few elements pass the k-th best, and are sorted in.

Elements become integers in their order, NaN above all. A vector of them is compared with the k-th
best so far; most vectors have no better element. A better one is inserted into the sorted list,
after equal ones, by comparing and shifting the list a vector at a time.
"""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.normalize import TopK
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame import compaction
from mgx_mlir.passes.lowering.cpu.frame.axis_view import AxisView
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Nest, Tile
from mgx_mlir.passes.lowering.scalar import TypedScalar, ordered
from mgx_mlir.passes.lowering.select import KernelRule

_TYPES = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16)
_MOST = 512  # a longer list takes too long to sort in
_UNROLLED = 4  # vectors of a list; moving a longer one is a loop
_NOTHING = int(dtypes.INT32.lowest())  # below the key of any element
_NAN = int(dtypes.INT32.highest()) - 1  # key of NaN: its negation is above _NOTHING
Lists = list[ir.Value]  # keys and their indices; the first entry of each is a sentinel


def refusal(op: TopK) -> str | None:
    """Return why no vector kernel computes a topk, None if one does."""
    t = TensorType.of(op.input)
    axis = axis_of(op.axis, t.rank)
    if t.dtype not in _TYPES:
        return f"it orders {t.dtype}"
    if op.count is not None:
        return "k is not known"
    if op.indices is not None:
        return "its elements have explicit indices"
    if any(d != 1 for d in t.dims[axis + 1 :]):
        return "its elements are not contiguous"
    if 0 in t.dims:
        return "it has no elements"
    return f"k = {op.k} is 0, or too large for a list" if not 0 < op.k <= _MOST else None


def build(e: LoweringContext, op: TopK, x: ir.Value, isa: Isa) -> list[ir.Value]:
    """Build the list of the k best of each row."""
    t = TensorType.of(op.input)
    view = AxisView.of(e, x, t, axis_of(op.axis, t.rank))
    rows, count, _ = view.dims

    def body(tile: Tile) -> list[ir.Value]:
        k, row = tile.k, tile.start[0]
        source = k.collapse(k.inputs[0], [[0], [1, 2]])
        positions = _Listing(k, t, op, isa.lanes, k.inner(count)).searched(source, row)[1]

        def store(i: ir.Value, c: Lists) -> Lists:
            position = k.element(positions, [k.add(i, 1)])
            where = arith.IndexCastOp(ir.IndexType.get(), position).result
            value = k.element(source, [row, where])
            wide = arith.ExtSIOp(ir.IntegerType.get_signless(64), position).result
            return [k.put(value, c[0], [0, i]), k.put(wide, c[1], [0, i])]

        return k.loop(0, op.k, 1, tile.made, store)

    nest = Nest([view.tensor], [rows, op.k], [t.dtype, dtypes.INT64], (1,), isa.lanes, view.dims)
    outs = [TensorType.of(r) for r in op.operation.results]
    return [view.restored(e, v, out, op.k) for v, out in zip(nest.run(body), outs, strict=True)]


RULE = KernelRule(
    "topk", (TopK,), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.first, site.isa),
)  # fmt: skip


class _Listing:
    """Builds the search of one row."""

    def __init__(
        self, k: WorkgroupBuilder, t: TensorType, op: TopK, lanes: int, count: Index
    ) -> None:
        self.k, self.stored, self.lanes, self.count = k, t.dtype, lanes, count
        self.size, self.largest = op.k, op.largest
        self.vectors = -(-op.k // lanes)

    def keys(self, source: ir.Value, row: Index, j: Index, *, masked: bool) -> ir.Value:
        """Return elements as integers of which greater ones are better."""
        k, lanes = self.k, self.lanes
        read = k.read(source, [row, j], lanes, masked=masked)
        x = widen(k, TypedScalar(read, self.stored), lanes)
        b = StoredScalars(k, lanes, dtypes.FLOAT, dtypes.INT32)
        bits = b.bitcast(b.add(x, b.const(0.0, dtypes.FLOAT)), dtypes.INT32)  # -0 + 0 is 0
        key = ordered(b, bits, dtypes.INT32)
        key = b.select(b.is_nan(x), b.const(_NAN, dtypes.INT32), key)
        if not self.largest:
            key = b.not_(key)
        if masked:
            inside = compaction.inside(k, k.sub(self.count, j), lanes)
            nothing = k.splat(_NOTHING, lanes, dtypes.INT32)
            return arith.SelectOp(inside, key.value, nothing).result
        return key.value

    def searched(self, source: ir.Value, row: Index) -> Lists:
        """Return the list of a row, after a sentinel key above all others."""
        k, lanes = self.k, self.lanes
        room = 1 + self.vectors * lanes
        lists = [k.empty([room], dtypes.INT32), k.empty([room], dtypes.INT32)]
        nothing, zero = (k.splat(n, lanes, dtypes.INT32) for n in (_NOTHING, 0))
        lists = k.loop(
            1, room, lanes, lists,
            lambda i, c: [k.write(nothing, c[0], [i]), k.write(zero, c[1], [i])],
        )  # fmt: skip
        above = k.number(int(dtypes.INT32.highest()), dtypes.INT32)
        lists = [k.put(above, lists[0], [0]), k.put(k.number(0, dtypes.INT32), lists[1], [0])]

        def some(j: Index, masked: bool, c: Lists) -> Lists:
            keys, found, positions = self.keys(source, row, j, masked=masked), *c[:2]
            least = k.broadcast(k.element(found, [self.size]), lanes)
            better = arith.CmpIOp(arith.CmpIPredicate.sgt, keys, least).result
            kind = k.reduce(better, "or")
            spare = c[2]
            return k.when(
                kind,
                lambda: self.sorted_in(keys, j, [found, positions, spare]),
                lambda: list(c),
                [v.type for v in c],
            )

        return k.along(self.count, lanes, [*lists, k.empty([lanes], dtypes.INT32)], some)[:2]

    def sorted_in(self, keys: ir.Value, j: Index, lists: Lists) -> Lists:
        """Return the lists with the vector's keys that are better than the last entry inserted."""
        k = self.k
        spare = k.write(keys, lists[2], [0])
        i32 = ir.IntegerType.get_signless(32)

        def one(lane: ir.Value, c: Lists) -> Lists:
            key = k.element(spare, [lane])
            last = k.element(c[0], [self.size])
            better = arith.CmpIOp(arith.CmpIPredicate.sgt, key, last).result
            position = arith.IndexCastOp(i32, self.k.index(k.add(j, lane))).result
            return k.when(
                better, lambda: self.placed(key, position, c), lambda: list(c), [v.type for v in c]
            )

        made = k.loop(0, self.lanes, 1, lists[:2], one)
        return [*made, spare]

    def placed(self, key: ir.Value, position: ir.Value, lists: Lists) -> Lists:
        """Return the lists with one entry inserted: worse ones are shifted up, from the end on."""
        k, lanes = self.k, self.lanes
        new, here = k.broadcast(key, lanes), k.broadcast(position, lanes)

        def moved(at: Index, c: Lists) -> Lists:
            own, before = k.read(c[0], [k.add(at, 1)], lanes), k.read(c[0], [at], lanes)
            own_place, place_before = k.read(c[1], [k.add(at, 1)], lanes), k.read(c[1], [at], lanes)
            stays = arith.CmpIOp(arith.CmpIPredicate.sge, own, new).result
            follows = arith.CmpIOp(arith.CmpIPredicate.sge, before, new).result
            up = arith.SelectOp(follows, new, before).result
            place_up = arith.SelectOp(follows, here, place_before).result
            return [
                k.write(arith.SelectOp(stays, own, up).result, c[0], [k.add(at, 1)]),
                k.write(arith.SelectOp(stays, own_place, place_up).result, c[1], [k.add(at, 1)]),
            ]

        if self.vectors <= _UNROLLED:
            for i in reversed(range(self.vectors)):
                lists = moved(i * lanes, lists)
            return lists
        last = (self.vectors - 1) * lanes
        return k.loop(0, last + lanes, lanes, lists, lambda n, c: moved(k.sub(last, n), list(c)))

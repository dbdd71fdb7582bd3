"""nonmaxsuppression as CPU kernels: a heap of candidates, each compared with the boxes kept so far.

Candidates are 64 bits: their score in the order of integers, below it the complement of their
index, so that one comparison also puts the lower index first. Candidates are popped until enough
boxes are kept. Kept boxes are stored as corners and area, and a vector of them is compared with a
candidate at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.selection import NonMaxSuppression
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame import compaction
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from mgx_mlir.passes.lowering.iree import buffer_views
from mgx_mlir.passes.lowering.ops.movement import one_index
from mgx_mlir.passes.lowering.scalar import TypedScalar, constant_of, ordered
from mgx_mlir.passes.lowering.scalar import widen as widen_scalar
from mgx_mlir.passes.lowering.select import KernelRule

_TYPES = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16)
_GROUPS = 16  # workgroups: each has scratch of its own for candidates
_ALONE = 1 << 13  # scores; fewer do not pay for several workgroups
_COLUMNS = 3  # batch, class, box
_SIDES = 4  # low and low, high and high
_AREA = 4
_GREATER, _LESS = 2, 4  # arith.cmpf predicates: ogt, olt
_LAST = int(dtypes.INT64.lowest())  # behind every candidate


def refusal(op: NonMaxSuppression) -> str | None:
    """Return why the kernel does not take an op, None if it does."""
    t = TensorType.of(op.scores)
    if t.dtype not in _TYPES:
        return f"it compares {t.dtype}"
    if op.max_output_boxes_per_class is None:
        return "no boxes are wanted"
    return "it has no boxes" if 0 in t.dims else None


def build(e: LoweringContext, op: NonMaxSuppression, isa: Isa) -> list[ir.Value]:
    """Build the search for every batch and class, and the list of kept boxes."""
    assert op.max_output_boxes_per_class is not None
    boxes, scores = e.tensor(op.boxes), e.tensor(op.scores)
    batch, classes, count = e.extents(scores)
    limit = index.clamp(e, one_index(e, op.max_output_boxes_per_class), 0, count)
    pairs = e.mul(batch, classes)
    flat = TensorType(TensorType.of(op.scores).dtype, tuple(e.static_dims([pairs, count])))
    scores = views.reshape_tensor(e, scores, flat, [pairs, count])
    search = _Search(op, isa.lanes, [pairs, classes, count, limit])
    if search.is_alone:
        return [search.listed(e, boxes, scores)]
    chosen, counts = search.found(e, boxes, scores)
    return [_listed(e, op, chosen, counts, search.extents)]


RULE = KernelRule(
    "box_suppression", (NonMaxSuppression,), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.isa),
)  # fmt: skip


class _Search:
    """The kernel that finds the boxes of each pair of batch and class.

    extents: of pairs, classes, boxes, and how many boxes of a pair are wanted.
    """

    def __init__(self, op: NonMaxSuppression, lanes: int, extents: Sequence[Extent]) -> None:
        self.op, self.lanes, self.extents = op, lanes, extents
        self.dtype = TensorType.of(op.boxes).dtype

    @property
    def is_alone(self) -> bool:
        """Return whether one workgroup has all pairs, with its scratch on the stack."""
        pairs, _, count, limit = self.extents
        if not (isinstance(pairs, int) and isinstance(count, int)):
            return False
        room = max(limit, 1) if isinstance(limit, int) else count
        boxes = (count + self.lanes) * dtypes.INT64.size
        kept = (_SIDES + 1) * (room + self.lanes) * dtypes.FLOAT.size
        return pairs * count <= _ALONE and boxes + kept <= SCRATCH_BYTES

    def scratch(self, count: Index, room: Index) -> tuple[list[Index], list[Index]]:
        """Return the extents of a workgroup's candidates (i64), and of its kept boxes (f32)."""
        k = IndexBuilder()
        return [1, k.add(count, self.lanes)], [1, _SIDES + 1, k.add(room, self.lanes)]

    def inputs(self, e: LoweringContext, boxes: ir.Value, scores: ir.Value) -> list[ir.Value]:
        thresholds = [v for v in (self.op.iou_threshold, self.op.score_threshold) if v is not None]
        return [boxes, scores, *(_single(e, v) for v in thresholds)]

    def listed(self, e: LoweringContext, boxes: ir.Value, scores: ir.Value) -> ir.Value:
        """Return rows of (batch, class, box), where one workgroup has all pairs.

        They are the first rows of a tensor that fits all, whose last row begins with their
        number.
        """
        pairs, _, count, limit = self.extents
        padded, room = self.op.padded, e.max(limit, 1) if isinstance(limit, int) else count
        rows = e.mul(pairs, count if padded else room)
        size = [rows if padded else e.add(rows, 1), _COLUMNS]

        def body(k: WorkgroupBuilder) -> list[ResultTile]:
            pair = _Pair(k, self, [k.inner(x) for x in self.extents])
            heap, kept = self.scratch(pair.count, room)
            start = [
                k.empty(size, dtypes.INT64), k.empty(heap, dtypes.INT64),
                k.empty(kept, dtypes.FLOAT), k.index(0),
            ]  # fmt: skip

            def one(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
                made, heap, kept, total = c

                def chosen(number: ir.Value, many: ir.Value, made: ir.Value) -> ir.Value:
                    return pair.row(made, k.add(total, many), i, number)

                many, *tensors = pair.searched(i, made, heap, kept, chosen)
                return [*tensors, k.index(k.add(total, many))]

            made, _, _, total = k.loop(0, k.inner(pairs), 1, start, one)
            if padded:
                made = _filled(k, made, total, rows)
            else:
                made = k.put(index.as_i64(k, total), made, [rows, 0])
            return [ResultTile(made, [0, 0], size)]

        inputs, results = self.inputs(e, boxes, scores), [(size, dtypes.INT64)]
        (made,) = dispatch(inputs, results, [(1, 1)], body, self.extents)
        return made if padded else _first_rows(e, made, rows)

    def found(
        self, e: LoweringContext, boxes: ir.Value, scores: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Return the boxes of each pair, best first, and their numbers."""
        pairs, _, count, limit = self.extents
        room = e.max(limit, 1)
        per = e.max(index.ceil_div(e, pairs, _GROUPS), 1)
        groups = e.div(e.add(pairs, e.sub(per, 1)), per)
        heaps, kept = ([groups, *own[1:]] for own in self.scratch(count, room))
        results = [
            ([pairs, room], dtypes.INT32), ([pairs], dtypes.INT64),
            (heaps, dtypes.INT64), (kept, dtypes.FLOAT),
        ]  # fmt: skip

        def body(k: WorkgroupBuilder) -> list[ResultTile]:
            pair = _Pair(k, self, [k.inner(x) for x in self.extents])
            own = k.inner(per)
            first = k.mul(k.at[0], own)
            mine = k.min(own, k.sub(k.inner(pairs), first))
            positions = k.inner(room)
            start = [
                k.empty([mine, positions], dtypes.INT32), k.empty([mine], dtypes.INT64),
                k.empty([1, *(k.inner(x) for x in heaps[1:])], dtypes.INT64),
                k.empty([1, *(k.inner(x) for x in kept[1:])], dtypes.FLOAT),
            ]  # fmt: skip

            def one(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
                made, counts, heap, kept = c

                def chosen(number: ir.Value, many: ir.Value, made: ir.Value) -> ir.Value:
                    short = arith.TruncIOp(ir.IntegerType.get_signless(32), number).result
                    return k.put(short, made, [i, many])

                many, made, *scratch = pair.searched(k.add(first, i), made, heap, kept, chosen)
                return [made, k.put(index.as_i64(k, many), counts, [i]), *scratch]

            made = k.loop(0, mine, 1, start, one)
            at = [[first, 0], [first], [k.at[0], 0], [k.at[0], 0, 0]]
            sizes = [[mine, positions], [mine], [1, k.inner(heaps[1])]]
            sizes.append([1, _SIDES + 1, k.inner(kept[2])])
            return [
                ResultTile(v, where, many) for v, where, many in zip(made, at, sizes, strict=True)
            ]

        inputs, more = self.inputs(e, boxes, scores), [*self.extents, per, room, *heaps, *kept]
        # scratch of a dynamic size is a result that nothing reads
        chosen, counts, _, _ = dispatch(inputs, results, [(groups, 1)], body, more)
        return chosen, counts


class _Pair:
    """Builds the search of one pair of batch and class."""

    def __init__(self, k: WorkgroupBuilder, search: _Search, extents: Sequence[Index]) -> None:
        self.k, self.lanes, self.dtype = k, search.lanes, search.dtype
        _, self.classes, self.count, self.limit = extents
        self.center = search.op.center_point_box
        self.boxes, self.scores, *thresholds = k.inputs
        self.overlap = k.number(0.0)
        if search.op.iou_threshold is not None:
            self.overlap = self.scalar(thresholds.pop(0), [0])
        least = self.scalar(thresholds[0], [0]) if thresholds else None
        self.least = least

    def scalar(self, source: ir.Value, at: Sequence[Index]) -> ir.Value:
        """Return an element as f32."""
        value = self.k.element(source, at)
        dtype = dtypes.from_mlir(value.type)
        if dtype is dtypes.DOUBLE:
            return arith.TruncFOp(ir.F32Type.get(), value).result
        return widen_scalar(TypedScalar(value, dtype)).value

    def searched(
        self, pair: Index, made: ir.Value, heap: ir.Value, kept: ir.Value,
        chosen: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return how many boxes a pair has, and the tensors.

        chosen(number, many, made): `made` with the box (i64) that follows `many` others.
        """
        k = self.k
        batch = k.div(pair, self.classes)
        n, heap = self.candidates(pair, heap)
        heap = k.put(k.number(_LAST, dtypes.INT64), heap, [0, n])
        last = k.sub(k.div(n, 2), 1)

        def ordered_at(j: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            at = k.sub(last, j)
            return [self.sifted(c[0], at, n, k.element(c[0], [0, at]))]

        (heap,) = k.loop(0, k.div(n, 2), 1, [heap], ordered_at)

        def goes_on(c: list[ir.Value]) -> ir.Value:
            return arith.AndIOp(k.is_less(0, c[0]), k.is_less(c[1], self.limit)).result

        def round_(c: list[ir.Value]) -> list[ir.Value]:
            n, many, made, heap, kept = c
            position = self.position(k.element(heap, [0, 0]))
            sides, area = self.corners(batch, position)
            hit = self.overlaps(sides, area, many, kept)

            def add() -> list[ir.Value]:
                return [
                    k.index(k.add(many, 1)),
                    chosen(index.as_i64(k, position), many, made),
                    self.added(sides, area, many, kept),
                ]

            many, made, kept = k.when(
                hit, lambda: [many, made, kept], add, [v.type for v in (many, made, kept)]
            )
            rest = k.sub(n, 1)
            moved = k.element(heap, [0, rest])
            heap = k.put(k.number(_LAST, dtypes.INT64), heap, [0, rest])
            heap = self.sifted(heap, 0, rest, moved)
            return [k.index(rest), many, made, heap, kept]

        _, *found = k.repeat([n, k.index(0), made, heap, kept], goes_on, round_)
        return found

    def row(self, made: ir.Value, at: Index, pair: Index, number: ir.Value) -> ir.Value:
        """Return the list with the row (batch, class, box) of a pair at an index."""
        k = self.k
        batch, which = (index.as_i64(k, f(pair, self.classes)) for f in (k.div, k.rem))
        return _with_row(k, made, at, [batch, which, number])

    # ---- candidates --------------------------------------------------------------------------

    def candidates(self, pair: Index, heap: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return how many boxes have a score above the least, and those side by side."""
        k, part, wide = self.k, max(self.lanes // 2, 2), 4 * self.lanes
        start = [k.index(0), heap]

        def some(at: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            x = self.score(pair, at, part, masked=masked)
            mask = compaction.inside(k, k.sub(self.count, at), part) if masked else None
            if self.least is not None:
                above = self.above(x, part)
                mask = above if mask is None else arith.AndIOp(above, mask).result
            keys = self.keys(x, at, part)
            if mask is None:
                return [k.index(k.add(c[0], part)), k.write(keys, c[1], [0, c[0]])]
            packed, many = compaction.kept(k, keys, mask)
            return [k.index(k.add(c[0], many)), k.write(packed, c[1], [0, c[0]])]

        most: Index = 0
        if self.least is not None:  # most vectors have no candidate
            most = k.sub(self.count, k.rem(self.count, wide))

            def many(at: Index, c: list[ir.Value]) -> list[ir.Value]:
                any_ = k.reduce(self.above(self.score(pair, at, wide, masked=False), wide), "or")
                return k.when(
                    any_,
                    lambda: k.loop(
                        at, k.add(at, wide), part, c, lambda j, own: some(j, False, own)
                    ),
                    lambda: c,
                    [v.type for v in c],
                )

            if most != 0:
                start = k.loop(0, most, wide, start, many)
        n, heap = k.along(
            k.sub(self.count, most), part, start,
            lambda j, masked, c: some(k.add(most, j), masked, c),
        )  # fmt: skip
        return n, heap

    def score(self, pair: Index, at: Index, lanes: int, *, masked: bool) -> TypedScalar:
        read = self.k.read(self.scores, [pair, at], lanes, masked=0.0 if masked else None)
        return widen(self.k, TypedScalar(read, self.dtype), lanes)

    def above(self, x: TypedScalar, lanes: int) -> ir.Value:
        assert self.least is not None
        least = self.k.broadcast(self.least, lanes)
        return arith.CmpFOp(_GREATER, x.value, least).result

    def keys(self, x: TypedScalar, at: Index, lanes: int) -> ir.Value:
        """Return scores with their indices, as i64 of which greater ones come first; NaN last."""
        k = self.k
        b = StoredScalars(k, lanes, dtypes.FLOAT, dtypes.INT32)
        bits = b.bitcast(b.add(x, b.const(0.0, dtypes.FLOAT)), dtypes.INT32)  # -0 + 0 is 0
        key = ordered(b, bits, dtypes.INT32)
        lowest = b.const(int(dtypes.INT32.lowest()), dtypes.INT32)
        key = b.select(b.is_nan(x), lowest, key)
        kind = k.vector_type(lanes, dtypes.INT64)
        high = arith.ShLIOp(
            arith.ExtSIOp(kind, key.value).result, k.splat(32, lanes, dtypes.INT64)
        ).result
        numbers: Any = np.arange(2**32 - 1, 2**32 - 1 - lanes, -1, dtype=np.int64)
        ahead = constant_of(kind, ir.DenseElementsAttr.get(numbers, type=kind))
        first = k.broadcast(index.as_i64(k, at), lanes)
        return arith.OrIOp(high, arith.SubIOp(ahead, first).result).result

    def position(self, key: ir.Value) -> ir.Value:
        """Return the index in a key, inside of the boxes."""
        i32 = ir.IntegerType.get_signless(32)
        low = arith.TruncIOp(i32, key).result
        position = arith.XOrIOp(low, self.k.number(-1, dtypes.INT32)).result
        return arith.IndexCastUIOp(ir.IndexType.get(), position).result

    def sifted(self, heap: ir.Value, at: Index, n: Index, value: ir.Value) -> ir.Value:
        """Return the heap with the entry at `at` replaced by a value and sifted down; n: its
        size.
        """
        k = self.k
        yes = k.number(True, dtypes.BOOL)

        def step(c: list[ir.Value]) -> list[ir.Value]:
            at, heap, _ = c
            child = k.index(k.add(k.mul(at, 2), 1))
            left, right = (k.element(heap, [0, k.add(child, i)]) for i in (0, 1))
            turn = arith.CmpIOp(arith.CmpIPredicate.sgt, right, left).result
            child = k.index(k.add(child, arith.IndexCastUIOp(ir.IndexType.get(), turn).result))
            better = arith.MaxSIOp(left, right).result
            goes = arith.CmpIOp(arith.CmpIPredicate.sgt, better, value).result
            kept = arith.SelectOp(goes, better, value).result
            at_next = arith.SelectOp(goes, child, at).result
            return [at_next, k.put(kept, heap, [0, at]), goes]

        def goes_on(c: list[ir.Value]) -> ir.Value:
            return arith.AndIOp(c[2], k.is_less(k.add(k.mul(c[0], 2), 1), n)).result

        at, heap, _ = k.repeat([k.index(at), heap, yes], goes_on, step)
        return k.put(value, heap, [0, at])

    # ---- boxes -------------------------------------------------------------------------------

    def corners(self, batch: Index, position: ir.Value) -> tuple[list[ir.Value], ir.Value]:
        """Return the low and high sides of a box, and its area; NaN for an empty box."""
        k, numbers = self.k, [self.scalar(self.boxes, [batch, position, i]) for i in range(_SIDES)]
        first, second = numbers[:2], numbers[2:]
        if self.center:
            half = k.number(0.5)
            second = [arith.MulFOp(v, half).result for v in second]
            low = [arith.SubFOp(p, q).result for p, q in zip(first, second, strict=True)]
            high = [arith.AddFOp(p, q).result for p, q in zip(first, second, strict=True)]
        else:
            low = [_less(p, q) for p, q in zip(first, second, strict=True)]
            high = [_more(p, q) for p, q in zip(first, second, strict=True)]
        sides = [arith.SubFOp(h, lo).result for lo, h in zip(low, high, strict=True)]
        area = arith.MulFOp(*sides).result
        some = arith.CmpFOp(_GREATER, area, k.number(0.0)).result
        return [*low, *high], arith.SelectOp(some, area, k.number(float("nan"))).result

    def added(
        self, sides: Sequence[ir.Value], area: ir.Value, many: ir.Value, kept: ir.Value
    ) -> ir.Value:
        """Return the kept boxes with one more; what stands behind it in its vector is no box."""
        k, lanes = self.k, self.lanes
        nothing = k.splat(float("nan"), lanes)
        starts = k.is_equal(k.rem(many, lanes), 0)
        (kept,) = k.when(
            starts, lambda: [k.write(nothing, kept, [0, _AREA, many])], lambda: [kept], [kept.type]
        )
        for row, v in enumerate([*sides, area]):
            kept = k.put(v, kept, [0, row, many])
        return kept

    def overlaps(
        self, sides: Sequence[ir.Value], area: ir.Value, many: ir.Value, kept: ir.Value
    ) -> ir.Value:
        """Return whether a box overlaps a kept one by more than the limit; NaN compares false."""
        k, lanes = self.k, self.lanes
        own = [k.broadcast(v, lanes) for v in sides]
        own_area, most = k.broadcast(area, lanes), k.broadcast(self.overlap, lanes)
        zero = k.splat(0.0, lanes)

        def is_more(a: ir.Value, b: ir.Value) -> ir.Value:
            return arith.CmpFOp(_GREATER, a, b).result

        def step(c: list[ir.Value]) -> list[ir.Value]:
            at = c[0]
            rows = [k.read(kept, [0, row, at], lanes) for row in range(_SIDES + 1)]
            low = [_more(a, b) for a, b in zip(own[:2], rows[:2], strict=True)]
            high = [_less(a, b) for a, b in zip(own[2:], rows[2:4], strict=True)]
            wide = [arith.SubFOp(h, lo).result for lo, h in zip(low, high, strict=True)]
            shared = arith.MulFOp(*wide).result
            both = arith.AddFOp(own_area, rows[_AREA]).result
            union = arith.SubFOp(both, shared).result
            found = is_more(arith.DivFOp(shared, union).result, most)
            for v in (*wide, shared, union):
                found = arith.AndIOp(found, is_more(v, zero)).result
            return [k.index(k.add(at, lanes)), k.reduce(found, "or")]

        def goes_on(c: list[ir.Value]) -> ir.Value:
            none = arith.XOrIOp(c[1], k.number(True, dtypes.BOOL)).result
            return arith.AndIOp(none, k.is_less(c[0], many)).result

        return k.repeat([k.index(0), k.number(False, dtypes.BOOL)], goes_on, step)[1]


def _less(a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the smaller of two, by one instruction that drops a NaN; the box's area is NaN
    then.
    """
    return arith.SelectOp(arith.CmpFOp(_LESS, a, b).result, a, b).result


def _more(a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the larger of two, as `_less` does."""
    return arith.SelectOp(arith.CmpFOp(_GREATER, a, b).result, a, b).result


def _single(e: LoweringContext, v: ir.Value) -> ir.Value:
    """Return the one element of an operand as a tensor of rank 1."""
    t = TensorType.of(v)
    return views.reshape_tensor(e, e.tensor(v), TensorType(t.dtype, (1,)), [1])


def _listed(
    e: LoweringContext,
    op: NonMaxSuppression,
    chosen: ir.Value,
    counts: ir.Value,
    extents: Sequence[Extent],
) -> ir.Value:
    """Return rows of (batch, class, box), one pair of batch and class after the other.

    They are the first rows of a tensor that fits all, whose last row begins with their number.
    """
    pairs, classes, count, limit = extents
    rows = e.mul(pairs, count if op.padded else e.max(limit, 1))
    size = [rows if op.padded else e.add(rows, 1), _COLUMNS]

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (source, many), own = k.inputs, [k.inner(d) for d in size]

        def pair(p: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            made, start = c
            batch, which = (index.as_i64(k, f(p, k.inner(classes))) for f in (k.div, k.rem))

            def row(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
                wide = arith.ExtUIOp(ir.IntegerType.get_signless(64), k.element(source, [p, i]))
                return [_with_row(k, c[0], k.add(start, i), [batch, which, wide.result])]

            have = arith.IndexCastOp(ir.IndexType.get(), k.element(many, [p])).result
            return [*k.loop(0, have, 1, [made], row), k.index(k.add(start, have))]

        start = [k.empty(own, dtypes.INT64), k.index(0)]
        made, end = k.loop(0, k.inner(pairs), 1, start, pair)
        if op.padded:
            made = _filled(k, made, end, own[0])
        else:
            made = k.put(index.as_i64(k, end), made, [k.inner(rows), 0])
        return [ResultTile(made, [0, 0], own)]

    more = [*extents, rows, *size]
    (made,) = dispatch([chosen, counts], [(size, dtypes.INT64)], [(1, 1)], body, more)
    return made if op.padded else _first_rows(e, made, rows)


def _first_rows(e: LoweringContext, made: ir.Value, rows: Extent) -> ir.Value:
    """Return the beginning of a tensor, as many rows as the element behind `rows` of them says."""
    memory = buffer_views.memory(e, made)
    total = buffer_views.number(e, memory, e.mul(rows, _COLUMNS))
    found = [index.to_index(total, dtypes.INT64), _COLUMNS]
    return buffer_views.beginning(e, memory, found, dtypes.INT64)


def _with_row(
    k: WorkgroupBuilder, made: ir.Value, at: Index, numbers: Sequence[ir.Value]
) -> ir.Value:
    """Return the list with one row."""
    for column, v in enumerate(numbers):
        made = k.put(v, made, [at, column])
    return made


def _filled(k: WorkgroupBuilder, made: ir.Value, start: Index, size: Index) -> ir.Value:
    """Return the list with zeros in the rows [start, size)."""
    zeros = [k.number(0, dtypes.INT64)] * _COLUMNS
    return k.loop(start, size, 1, [made], lambda i, c: [_with_row(k, c[0], i, zeros)])[0]

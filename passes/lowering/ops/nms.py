"""Lowering of nonmaxsuppression: one round per chosen box, all batches and classes at once."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, scf
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.selection import NonMaxSuppression
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.iree import buffer_views
from mgx_mlir.passes.lowering.ops.indexing import first_above, one_index
from mgx_mlir.passes.lowering.ops.reduce import reduce_tensor
from mgx_mlir.passes.lowering.ops.scan import running_sums
from mgx_mlir.passes.lowering.ops.sort import arg_extreme_of, sort_keys
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, widen
from mgx_mlir.passes.lowering.views import reshape_tensor

_INT, _BOOL = dtypes.INT64, dtypes.BOOL


@lowers(NonMaxSuppression)
def nonmaxsuppression(
    op: NonMaxSuppression,
    ins: tuple[ir.Value, ir.Value, ir.Value | None, ir.Value | None, ir.Value | None],
    e: LoweringContext,
) -> ir.Value:
    """Each round takes the best box that is left and drops what overlaps it."""
    boxes, scores, most = ins[:3]
    t = TensorType.of(op.scores)
    batch, classes, count = own = e.extents(scores)
    total = e.mul(e.mul(batch, classes), count)
    if most is None or (isinstance(total, int) and total == 0):
        return e.fill([total if op.padded else 0, 3], _INT, 0)
    assert op.max_output_boxes_per_class is not None
    limit = index.clamp(e, one_index(e, op.max_output_boxes_per_class), 0, count)
    keys, kind = _score_keys(e, op, scores, t, own)
    chosen = e.fill([batch, classes, limit], _INT, 0)
    counts = e.fill([batch, classes], _INT, 0)
    start = [keys, chosen, counts]
    kinds = [v.type for v in start]
    static = not any(e.dynamic_values(e.extents(v)) for v in start)

    def out(values: Sequence[ir.Value]) -> list[ir.Value]:
        return [v if static else buffer_views.leave(e, v) for v in values]

    def into(values: Sequence[ir.Value]) -> list[ir.Value]:
        pairs = zip(values, kinds, strict=True)
        return [v if static else buffer_views.enter(e, v, k) for v, k in pairs]

    loop = scf.ForOp(e.index(0), e.index(limit), e.index(1), out(start))
    with ir.InsertionPoint(loop.body):
        held = into(list(loop.inner_iter_args))
        scf.YieldOp(out(_round(e, op, boxes, kind, own, limit, loop.induction_variable, *held)))
    results = list(loop.results)
    _, chosen, counts = [buffer_views.settled(e, v) for v in results] if static else into(results)
    return _listed(e, op, chosen, counts, own, limit, total)


def _score_keys(
    e: LoweringContext,
    op: NonMaxSuppression,
    scores: ir.Value,
    t: TensorType,
    own: Sequence[Extent],
) -> tuple[ir.Value, DType]:
    """Return scores as integers in the same order; the smallest integer for excluded boxes."""
    keys, kind = sort_keys(e, scores, t.dtype, True)
    least = op.score_threshold
    every = tuple(range(3))

    def body(where: list[ir.Value], key: ir.Value, score: ir.Value) -> ir.Value:
        b = ArithScalars(kind, kind)
        value = widen(TypedScalar(score, t.dtype))
        # NaN comes last, after -inf
        nan = b.is_nan(value)
        found = b.select(nan, b.const(int(kind.lowest()) + 1, kind), TypedScalar(key, kind))
        if least is not None:
            above = b.cmp("gt", value, _number(e, least, value.dtype))
            found = b.select(above, found, b.const(int(kind.lowest()), kind))
        return found.value

    found = index.from_positions_alone(e, own, kind, body, [keys, scores], [every, every])
    return found, kind


def _number(e: LoweringContext, v: ir.Value, dtype: DType) -> TypedScalar:
    """Return the one element of a float operand."""
    t = TensorType.of(v)
    value = widen(TypedScalar(index.read_only_element(e, e.tensor(v)), t.dtype))
    return ArithScalars(dtype, dtype).cast(value, dtype)


def _round(
    e: LoweringContext,
    op: NonMaxSuppression,
    boxes: ir.Value,
    kind: DType,
    own: Sequence[Extent],
    limit: Extent,
    number: ir.Value,
    keys: ir.Value,
    chosen: ir.Value,
    counts: ir.Value,
) -> list[ir.Value]:
    pairs = list(own[:2])
    best, position = arg_extreme_of(e, keys, kind, 2, pairs, True, False)
    dead = int(kind.lowest())
    b = ArithScalars(kind, kind)

    def is_found(key: ir.Value) -> TypedScalar:
        return b.cmp("ne", TypedScalar(key, kind), dead)

    def choose(where: list[ir.Value], old: ir.Value, key: ir.Value, at: ir.Value) -> ir.Value:
        now = TypedScalar(index.compare(e, index.EQ, where[2], number), _BOOL)
        take = b.and_(now, is_found(key))
        return b.select(take, TypedScalar(at, _INT), TypedScalar(old, _INT)).value

    def count(where: list[ir.Value], old: ir.Value, key: ir.Value) -> ir.Value:
        i = ArithScalars(_INT, _INT)
        return i.add(TypedScalar(old, _INT), i.cast(is_found(key), _INT)).value

    box = TensorType.of(op.boxes)
    work = computed(box.dtype)

    def suppress(where: list[ir.Value], key: ir.Value, top: ir.Value, at: ir.Value) -> ir.Value:
        chosen_box = index.normalized(e, at, own[2], _INT)
        itself = TypedScalar(index.compare(e, index.EQ, where[2], chosen_box), _BOOL)
        limit = _threshold(e, op, work)
        overlap = _overlap(e, op, boxes, box.dtype, work, where[0], where[2], chosen_box)
        drop = b.or_(itself, b.cmp("gt", overlap, limit))
        drop = b.and_(drop, is_found(top))
        return b.select(drop, b.const(dead, kind), TypedScalar(key, kind)).value

    three, two = (0, 1, 2), (0, 1)
    extents = [*pairs, limit]
    return [
        index.from_positions_alone(
            e, own, kind, suppress, [keys, best, position], [three, two, two]
        ),
        index.from_positions_alone(
            e, extents, _INT, choose, [chosen, best, position], [three, two, two]
        ),
        index.from_positions_alone(e, pairs, _INT, count, [counts, best], [two, two]),
    ]


def _threshold(e: LoweringContext, op: NonMaxSuppression, work: DType) -> TypedScalar:
    if op.iou_threshold is None:
        return ArithScalars(work, work).const(0.0, work)
    return _number(e, op.iou_threshold, work)


def _overlap(
    e: LoweringContext,
    op: NonMaxSuppression,
    boxes: ir.Value,
    dtype: DType,
    work: DType,
    batch: ir.Value,
    first: ir.Value,
    second: ir.Value,
) -> TypedScalar:
    """Intersection over union; 0 where a box has no area."""
    b = ArithScalars(work, work)

    def corners(which: ir.Value) -> tuple[list[TypedScalar], list[TypedScalar]]:
        n = [
            widen(TypedScalar(index.read(boxes, [batch, which, e.index(i)]), dtype))
            for i in range(4)
        ]
        if op.center_point_box:
            halves = [b.div(v, 2.0) for v in n[2:]]
            low = [b.sub(c, h) for c, h in zip(n[:2], halves, strict=True)]
            high = [b.add(c, h) for c, h in zip(n[:2], halves, strict=True)]
            return low, high
        low = [b.min(p, q) for p, q in zip(n[:2], n[2:], strict=True)]
        return low, [b.max(p, q) for p, q in zip(n[:2], n[2:], strict=True)]

    def area(low: list[TypedScalar], high: list[TypedScalar]) -> TypedScalar:
        return b.mul(*(b.sub(h, lo) for lo, h in zip(low, high, strict=True)))

    low_a, high_a = corners(first)
    low_c, high_c = corners(second)
    sides = [
        b.sub(b.min(ha, hc), b.max(la, lc))
        for la, ha, lc, hc in zip(low_a, high_a, low_c, high_c, strict=True)
    ]
    both = b.and_(b.cmp("gt", sides[0], 0.0), b.cmp("gt", sides[1], 0.0))
    shared = b.select(both, b.mul(*sides), 0.0)
    own, other = area(low_a, high_a), area(low_c, high_c)
    union = b.sub(b.add(other, own), shared)
    valid = b.cmp("gt", shared, 0.0)
    for v in (own, other, union):
        valid = b.and_(valid, b.cmp("gt", v, 0.0))
    return b.select(valid, b.div(shared, b.select(valid, union, 1.0)), 0.0)


def _listed(
    e: LoweringContext,
    op: NonMaxSuppression,
    chosen: ir.Value,
    counts: ir.Value,
    own: Sequence[Extent],
    limit: Extent,
    total: Extent,
) -> ir.Value:
    """Rows of (batch, class, box), one pair of batch and class after the other."""
    pairs = e.mul(own[0], own[1])
    kind = TensorType(_INT, (pairs if isinstance(pairs, int) else DYN,))
    flat = reshape_tensor(e, counts, kind, [pairs])
    ends = running_sums(e, flat, _INT, 0, [pairs])
    rows = index.to_index(index.read(reduce_tensor(e, flat, _INT, [0], "add", _INT), []), _INT)
    wanted: Extent = total if op.padded else rows

    def row(where: list[ir.Value]) -> ir.Value:
        number = index.as_i64(e, where[0])
        pair = index.clamp(e, first_above(e, ends, number, pairs), 0, index.last_of(e, pairs))
        pair = e.index(pair)
        end = index.to_index(index.read(ends, [pair]), _INT)
        mine = index.to_index(index.read(flat, [pair]), _INT)
        slot = e.sub(where[0], e.sub(end, mine))
        slot = e.index(index.clamp(e, slot, 0, index.last_of(e, limit)))
        classes = e.max(own[1], 1)
        batch = e.index(e.div(pair, classes))
        which = e.index(e.rem(pair, classes))
        box = index.read_safely(e, chosen, [batch, which, slot], [limit])
        found = arith.SelectOp(
            index.compare(e, index.EQ, where[1], 0),
            index.as_i64(e, batch),
            arith.SelectOp(
                index.compare(e, index.EQ, where[1], 1), index.as_i64(e, which), box
            ).result,
        ).result
        inside = index.compare(e, index.SLT, where[0], rows)
        return arith.SelectOp(inside, found, index.zero_of(found.type)).result

    return index.from_positions(e, [wanted, 3], _INT, row)

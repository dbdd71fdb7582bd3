"""Lowerings of concat_past_present and gqa_rotary_embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.attention import ConcatPastPresent, GqaRotaryEmbedding
from mgx_mlir.dialects.migraphx.movement import Slice, cut_of
from mgx_mlir.passes.lowering import host, index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow as narrowed
from mgx_mlir.passes.lowering.cpu.frame.elements import widen as widened
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.nest import copies
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.last_updates import threads_of_updates
from mgx_mlir.passes.lowering.iree import linalg_ext
from mgx_mlir.passes.lowering.new_rows import NewRows
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    TypedScalar,
    computed,
    constant,
    narrow,
    widen,
)
from mgx_mlir.passes.lowering.views import reshape_tensor
from mgx_mlir.rewrite.pattern import users


@lowers(ConcatPastPresent)
def concat_past_present(
    op: ConcatPastPresent,
    ins: tuple[ir.Value, ir.Value, ir.Value, ir.Value | None, ir.Value | None, ir.Value | None],
    e: LoweringContext,
) -> ir.Value:
    """Lower to a select by position: new rows at their positions, old ones or 0 elsewhere."""
    x, seqlens, past, _, cos, sin = ins
    t, counts = TensorType.of(op.out), TensorType.of(op.seqlens_k)
    new_rows = NewRows(x, op.rows_first, None if cos is None or sin is None else (cos, sin))
    own, new = e.extents(past), new_rows.extents(e)
    longest = own[2]
    if op.rows is not None:
        (wanted,) = host.extents_of(e, op.rows)
        longest = e.max(longest, wanted)
    elif 0 in own or 0 in new:
        return past
    if op.rows is None and e.updates_in_place(past):
        if e.options.target == "gpu":
            return _scattered(e, new_rows, seqlens, past, counts, own)
        if op.operation not in e.made_before:
            ops = _together(e, op)
            made = _updated(e, [_update(e, o) for o in ops], seqlens, counts)
            e.made_before.update(zip([o.operation for o in ops], made, strict=True))
        return e.made_before.pop(op.operation)
    new_rows = new_rows.computed(e)
    x = new_rows.x
    isa = isa_of(e.options.arch) if e.has_vector_kernels(op.operation) else None
    if isa is not None:
        made = copies.cache_rows(e, t, new_rows, (seqlens, past), counts, longest, isa)
        if made is not None:
            return made

    def body(where: list[ir.Value]) -> ir.Value:
        batch, head, row, column = where
        old = constant(0, t.dtype).value
        if 0 not in own:
            safe = e.index(index.clamp(e, row, 0, index.last_of(e, own[2])))
            found = index.read_safely(e, past, [batch, head, safe, column], own[2:3])
            if op.rows is not None:
                inside = index.in_range(e, row, own[2])
                found = arith.SelectOp(inside, found, old).result
            old = found
        if 0 in new:
            return old
        at = e.sub(row, index.first_new_row(e, seqlens, counts, batch, new[2]))
        fits = index.in_range(e, e.index(at), new[2])
        safe = e.index(index.clamp(e, at, 0, index.last_of(e, new[2])))
        value = index.read_safely(e, x, new_rows.place(batch, head, safe, column), new[2:3])
        return arith.SelectOp(fits, value, old).result

    return index.from_positions(e, [*own[:2], longest, own[3]], t.dtype, body)


@dataclass(frozen=True)
class _Update:
    """New rows of a cache {batch, heads, rows, size}, whose extents are `own`."""

    new_rows: NewRows
    past: ir.Value
    own: Sequence[Extent]


def _together(e: LoweringContext, op: ConcatPastPresent) -> list[ConcatPastPresent]:
    """Return an op and others of the same new rows and places, which one kernel writes: values
    beside keys.
    """
    source, found = _heads_of(op), [op]
    for reader in users(source[0]) if source else ():
        for use in users(reader.results[0]) if is_a(reader, Slice) else ():
            other = use.opview
            if not isinstance(other, ConcatPastPresent) or other in found:
                continue
            dims = [TensorType.of(o.past).dims for o in (op, other)]
            same = other.seqlens_k == op.seqlens_k and other.rows_first == op.rows_first
            same = same and dims[0][1:2] + dims[0][3:] == dims[1][1:2] + dims[1][3:]
            same = same and TensorType.of(other.past).dtype is TensorType.of(op.past).dtype
            given = [v for v in (other.past, other.cos, other.sin) if v is not None]
            known = all(isinstance(v.owner, ir.Block) or v in e.scope.exprs for v in given)
            if same and known and other.rows is None and _heads_of(other) == source:
                found += [other] if e.updates_in_place(e.tensor(other.past)) else []
    return found


def _heads_of(op: ConcatPastPresent) -> tuple[ir.Value, ir.Block] | None:
    """Return the tensor that rows are some heads of, and the op's block; None for other rows."""
    owner = op.input.owner
    if isinstance(owner, ir.Block) or not is_a(owner, Slice):
        return None
    found, axis = cut_of(owner.opview), 2 if op.rows_first else 1
    return (owner.operands[0], op.operation.block) if found and found[0] == axis else None


def _update(e: LoweringContext, op: ConcatPastPresent) -> _Update:
    """Return the update of a cache, with rows in the tensor that they are heads of: no copy."""
    angles = None if op.cos is None or op.sin is None else (e.tensor(op.cos), e.tensor(op.sin))
    past, source = e.tensor(op.past), _heads_of(op)
    x = e.tensor(op.input if source is None else source[0])
    rows = NewRows(x, op.rows_first, angles)
    if source is not None:
        cut = cut_of(op.input.owner.opview)
        rows = replace(rows, first=cut[1] if cut else 0)
    return _Update(rows, past, e.extents(past))


def _updated(
    e: LoweringContext, updates: Sequence[_Update], seqlens: ir.Value, counts: TensorType
) -> list[ir.Value]:
    """Build a kernel that writes the new rows in place into caches, a head of each at a time."""
    first_of_all = updates[0]
    dtype = dtypes.from_mlir(ir.RankedTensorType(first_of_all.past.type).element_type)
    new, size = first_of_all.new_rows.extents(e), first_of_all.own[3]
    rows = [u.new_rows if isinstance(size, int) else u.new_rows.computed(e) for u in updates]
    tensors = [[r.x, *(r.angles or ())] for r in rows]
    # a dynamic size is written an element at a time
    lanes, columns = (size, 1) if isinstance(size, int) else (1, size)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        at = 1
        for number, (update, own) in enumerate(zip(updates, tensors, strict=True)):
            written(k, number, replace(update, new_rows=rows[number]), k.inputs[at : at + len(own)])
            at += len(own)
        return []

    def written(
        k: WorkgroupBuilder, number: int, update: _Update, inputs: Sequence[ir.Value]
    ) -> None:
        batch, head = k.index(k.at[0]), k.index(k.at[1])
        new_rows, taken = update.new_rows, k.add(head, update.new_rows.first)
        count, longest = k.inner(new[2]), k.inner(update.own[2])
        first = k.min(index.first_new_row(k, k.inputs[0], counts, batch, count), longest)

        def row(i: ir.Value, _: object) -> list[ir.Value]:
            def element(j: ir.Value, _: object) -> list[ir.Value]:
                tile, column = k.empty((1, 1, 1, lanes), dtype), 0
                if new_rows.angles:
                    parts = _turned_row(k, new_rows, inputs, dtype, (batch, taken, i), lanes)
                else:
                    parts = [k.read(inputs[0], new_rows.place(batch, taken, i, j), lanes)]
                for part in parts:
                    tile = k.write(part, tile, [0, 0, 0, column])
                    column += ir.VectorType(part.type).shape[0] if lanes > 1 else 1
                where = (batch, head, k.add(first, i), j)
                k.store(ResultTile(tile, where, (1, 1, 1, lanes)), number)
                return []

            return k.loop(0, k.inner(columns), 1, [], element)

        k.loop(0, k.min(count, k.sub(longest, first)), 1, [], row)

    own = first_of_all.own
    return dispatch(
        [seqlens, *[t for each in tensors for t in each]],
        [(u.own, dtype) for u in updates],
        [(own[0], 1), (own[1], 1)],
        body,
        [*[u.own[2] for u in updates], own[3], new[2]],
        updated=[u.past for u in updates],
    )


def _turned_row(
    k: WorkgroupBuilder, new_rows: NewRows, inputs: Sequence[ir.Value], dtype: dtypes.DType,
    at: tuple[Index, Index, Index], size: int,
) -> list[ir.Value]:  # fmt: skip
    """Return the halves of a row of a head, turned by the angles of its position."""
    batch, head, i = at
    half, kind = size // 2, computed(dtype)
    b = StoredScalars(k, half, kind, kind)

    def read(number: int, where: Sequence[Index]) -> list[TypedScalar]:
        found = [k.read(inputs[number], [*where, j], half) for j in (0, half)]
        return [widened(k, TypedScalar(v, dtype), half) for v in found]

    low, high = read(0, new_rows.place(batch, head, i))
    cos, sin = (read(number, [batch, 0, i]) for number in (1, 2))
    made = (
        b.sub(b.mul(low, cos[0]), b.mul(high, sin[0])),
        b.add(b.mul(high, cos[1]), b.mul(low, sin[1])),
    )
    return [narrowed(k, v, dtype, half).value for v in made]


def _scattered(
    e: LoweringContext,
    new_rows: NewRows,
    seqlens: ir.Value,
    past: ir.Value,
    counts: TensorType,
    own: Sequence[Extent],
) -> ir.Value:
    """Write the new rows in place into the cache, whose rows they fit."""
    dtype = dtypes.from_mlir(ir.RankedTensorType(past.type).element_type)
    new_rows = new_rows.computed(e)
    batch, heads, count, size = new_rows.extents(e)
    total = e.product([batch, heads, count])

    def coordinate(at: list[ir.Value]) -> ir.Value:
        entry, *inner = e.unraveled(at[0], new_rows.place(batch, heads, count))
        head, row = reversed(inner) if new_rows.rows_first else inner
        row = e.add(row, index.first_new_row(e, seqlens, counts, entry, count))
        row = index.clamp(e, row, 0, index.last_of(e, own[2]))
        return index.as_i64(e, index.picked(e, at[1], [entry, head, row]))

    where = index.from_positions_alone(e, [total, 3], dtypes.INT64, coordinate)
    kind = TensorType(dtype, tuple(e.static_dims([total, size])))
    rows = reshape_tensor(e, new_rows.x, kind, [total, size])
    threads = threads_of_updates(e.options.arch, kind.dims)
    return linalg_ext.updated(e, past, where, rows, range(3), threads)


@lowers(GqaRotaryEmbedding)
def gqa_rotary_embedding(
    op: GqaRotaryEmbedding, ins: tuple[ir.Value, ir.Value, ir.Value, ir.Value], e: LoweringContext
) -> ir.Value:
    """Each element reads its partner of the pair and the row of the caches at its position."""
    x, seqlens, cos, sin = ins
    t, counts = TensorType.of(op.input), TensorType.of(op.seqlens_k)
    own = e.extents(x)
    positions, half = e.extents(cos)
    if 0 in own or (isinstance(half, int) and half == 0):
        return x
    turned = op.num_heads + op.kv_num_heads

    def body(where: list[ir.Value], element: ir.Value) -> ir.Value:
        batch, head, row, column = where
        row_at = e.add(index.first_new_row(e, seqlens, counts, batch, own[2]), row)
        row_at = e.index(index.clamp(e, row_at, 0, index.last_of(e, positions)))
        if op.interleaved:
            pair = e.div(column, 2)
            rest = e.rem(column, 2)
            second = index.compare(e, index.EQ, rest, 1)
            partner = e.sub(e.add(column, 1), e.mul(rest, 2))
        else:
            second = index.compare(e, index.SGE, column, half)
            back = e.sub(column, half)
            pair = index.select(e, second, back, column)
            partner = index.select(e, second, back, e.add(column, half))
        pair = e.index(index.clamp(e, pair, 0, index.last_of(e, half)))
        partner = e.index(index.clamp(e, partner, 0, index.last_of(e, own[3])))
        b = ArithScalars(t.dtype, t.dtype)

        def read(source: ir.Value, at: list[ir.Value], extents: Sequence[Extent]) -> TypedScalar:
            return widen(TypedScalar(index.read_safely(e, source, at, extents), t.dtype))

        c = read(cos, [row_at, pair], [positions, half])
        s = read(sin, [row_at, pair], [positions, half])
        value = widen(TypedScalar(element, t.dtype))
        other = read(x, [batch, head, row, partner], own[3:])
        cross = b.mul(other, s)
        signed = b.select(TypedScalar(second, dtypes.BOOL), cross, b.neg(cross))
        found = b.add(b.mul(value, c), signed)
        inside = arith.AndIOp(
            index.compare(e, index.SLT, head, turned),
            index.compare(e, index.SLT, column, e.mul(half, 2)),
        ).result
        return narrow(b.select(TypedScalar(inside, dtypes.BOOL), found, value), t.dtype).value

    return index.from_positions(e, own, t.dtype, body, [x], [(0, 1, 2, 3)])

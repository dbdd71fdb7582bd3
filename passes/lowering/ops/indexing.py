"""Lowerings of ops that read by index: gather, gathernd, onehot, nonzero."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math, scf
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.indexing import Gather, GatherND, NonZero, OneHot
from mgx_mlir.passes.lowering import host
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.sites import number_of
from mgx_mlir.passes.lowering.expr import Expr, Extent, Splat
from mgx_mlir.passes.lowering.iree.linalg_ext import gather_slices, whole
from mgx_mlir.passes.lowering.ops.movement import extract_slice, one_index
from mgx_mlir.passes.lowering.ops.reduce import reduce_tensor
from mgx_mlir.passes.lowering.ops.scan import running_sums
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, widen
from mgx_mlir.passes.lowering.views import reshape_tensor

_SLICE_ELEMENTS = 8  # smaller slices do not pay for an inner loop


# ---- gather --------------------------------------------------------------------------------------


@lowers(Gather)
def gather(op: Gather, ins: tuple[ir.Value, ir.Value], e: LoweringContext) -> ir.Value | Expr:
    """Lower to a slice for one known index, whole rows along axis 0, else single elements.

    A splat table is not read: IREE would fold the reads, and leave vectors of the whole result's
    size.
    """
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    axis = axis_of(op.axis, t.rank)
    number = number_of(op.data)
    if number is not None:
        extents = [*t.dims[:axis], *e.extents(ins[1]), *t.dims[axis + 1 :]]
        return Splat(TensorType.of(op.out), number, extents)
    data, index = ins[0], whole(e, ins[1])
    own, counts = e.extents(data), e.extents(index)
    extents = [*own[:axis], *counts, *own[axis + 1 :]]
    if 0 in extents:
        return e.empty(extents, t.dtype)
    if it.elements == 1 and isinstance(own[axis], int) and e.elements(op.indices) is not None:
        at = host.extents_of(e, op.indices)[0] if it.rank <= 1 else None
        if isinstance(at, int):
            return _one_slice(e, data, own, axis, at, t, extents)
    slices = not _is_read_on_host(e, counts)
    if slices and axis == 0 and it.rank and isinstance(own[0], int) and _is_large(own[1:]):
        where = _normalized_indices(e, index, it, [own[0]], counts)
        return gather_slices(e, data, where, [0], extents, t.dtype)
    rank = it.rank

    # the indices are an operand of the linalg op: IREE collapses a loop nest without operands to
    # one dim, and with dynamic extents IREE 3.13 does not distribute that
    def body(where: list[ir.Value], value: ir.Value) -> ir.Value:
        at = indices.normalized(e, value, own[axis], it.dtype)
        source = [*where[:axis], at, *where[axis + rank :]]
        return indices.read_safely(e, data, source, own[axis : axis + 1])

    own_map = tuple(range(axis, axis + rank))
    dynamic = any(not isinstance(d, int) for d in extents)
    make = indices.from_positions_alone if dynamic else indices.from_positions
    return make(e, extents, t.dtype, body, [index], [own_map])


def _one_slice(
    e: LoweringContext,
    data: ir.Value,
    own: list[Extent],
    axis: int,
    at: int,
    t: TensorType,
    extents: list[Extent],
) -> ir.Value:
    extent = own[axis]
    assert isinstance(extent, int)
    at = min(max(at + extent if at < 0 else at, 0), extent - 1)
    offsets: list[Extent] = [0] * t.rank
    offsets[axis] = at
    sizes: list[Extent] = [*own[:axis], 1, *own[axis + 1 :]]
    part = extract_slice(e, data, offsets, sizes)
    return reshape_tensor(e, part, TensorType(t.dtype, tuple(e.static_dims(extents))), extents)


def _is_read_on_host(e: LoweringContext, counts: Sequence[Extent]) -> bool:
    """Return whether IREE would read the index of a gather of slices on the host: one on a GPU.

    It makes a slice of the gather, and the call waits for the index.
    """
    return e.options.target == "gpu" and all(n == 1 for n in counts)


def _is_large(extents: Sequence[Extent]) -> bool:
    n = 1
    for d in extents:
        n *= d if isinstance(d, int) else 1
    return n >= _SLICE_ELEMENTS


def _normalized_indices(
    e: LoweringContext,
    index: ir.Value,
    t: TensorType,
    ends: Sequence[Extent],
    extents: Sequence[Extent],
) -> ir.Value:
    """Index tuples (the last axis where there are several `ends`) inside of [0, end), as i64."""

    def body(where: list[ir.Value], value: ir.Value) -> ir.Value:
        end = ends[0] if len(ends) == 1 else indices.picked(e, where[-1], ends)
        return indices.as_i64(e, indices.normalized(e, value, end, t.dtype))

    rank = len(extents)
    return indices.from_positions(e, extents, dtypes.INT64, body, [index], [tuple(range(rank))])


@lowers(GatherND)
def gathernd(op: GatherND, ins: tuple[ir.Value, ir.Value], e: LoweringContext) -> ir.Value:
    """Whole slices at once where they are large, else element by element."""
    data, index = ins[0], whole(e, ins[1])
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    b, k = op.batch_dims, it.dims[-1]
    own, counts = e.extents(data), e.extents(index)
    batch = [x if isinstance(x, int) else y for x, y in zip(own[:b], counts[:b], strict=True)]
    extents = [*batch, *counts[b:-1], *own[b + k :]]
    if 0 in extents:
        return e.empty(extents, t.dtype)
    picked, rank = own[b : b + k], it.rank
    static = all(isinstance(d, int) for d in picked) and not _is_read_on_host(e, counts[:-1])
    if b == 0 and k > 0 and rank > 1 and static and _is_large(own[k:]):
        where = _normalized_indices(e, index, it, picked, counts)
        return gather_slices(e, data, where, list(range(k)), extents, t.dtype)

    # the first number of each index is an operand, as in gather: then the loop keeps its dims, and
    # no index is delinearised
    def body(where: list[ir.Value], *first: ir.Value) -> ir.Value:
        source = list(where[:b])
        for i in range(k):
            value = first[0] if i == 0 else indices.read(index, [*where[: rank - 1], e.index(i)])
            source.append(indices.normalized(e, value, picked[i], it.dtype))
        return indices.read_safely(e, data, [*source, *where[rank - 1 :]], picked)

    if k == 0:
        return indices.from_positions(e, extents, t.dtype, body)
    column = (*range(rank - 1), None)
    return indices.from_positions(e, extents, t.dtype, body, [index], [column])


# ---- onehot --------------------------------------------------------------------------------------


@lowers(OneHot)
def onehot(
    op: OneHot, ins: tuple[ir.Value, ir.Value | None, ir.Value], e: LoweringContext
) -> ir.Value:
    """Each element compares its index on the new axis with the index."""
    index, _, values = ins
    it, out = TensorType.of(op.indices), TensorType.of(op.out)
    axis = axis_of(op.axis, it.rank + 1)
    depth: Extent = op.depth
    if op.depth is None:
        assert op.depth_input is not None
        depth = one_index(e, op.depth_input)
    depth = e.max(depth, 0)
    extents = e.extents(index)
    extents.insert(axis, depth)
    if 0 in extents:
        return e.empty(extents, out.dtype)
    off, on = (indices.read(values, [e.index(i)]) for i in (0, 1))

    def body(where: list[ir.Value], value: ir.Value) -> ir.Value:
        at = indices.wrap(e, indices.to_index(value, it.dtype), depth, it.dtype)
        here = indices.compare(e, indices.EQ, at, where[axis])
        return arith.SelectOp(here, on, off).result

    entries = tuple(i if i < axis else i + 1 for i in range(it.rank))
    return indices.from_positions(e, extents, out.dtype, body, [index], [entries])


# ---- nonzero -------------------------------------------------------------------------------------


@lowers(NonZero)
def nonzero(op: NonZero, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Lower to a running count of non-zero elements, and bisection for the index of each count."""
    x, t = ins[0], TensorType.of(op.input)
    own = e.extents(x)
    total = e.product(own)
    if isinstance(total, int) and total == 0:
        return e.empty([t.rank, 0], dtypes.INT64)
    flat_type = TensorType(t.dtype, (total if isinstance(total, int) else DYN,))
    flat = reshape_tensor(e, x, flat_type, [total])
    flags = _flags(e, flat, t.dtype, [total])
    counts = running_sums(e, flags, dtypes.INT64, 0, [total])
    # a separate sum, as the last running count of a possibly empty tensor would need a host branch.
    # IREE 3.13 loses an extent that comes out of a branch: it allocates nothing for the results,
    # and kernels write over other memory
    found = reduce_tensor(e, flags, dtypes.INT64, [0], "add", dtypes.INT64)
    count = indices.to_index(indices.read(found, []), dtypes.INT64)
    wanted: Extent = total if op.padded else count
    if t.rank == 0:
        return e.empty([0, wanted], dtypes.INT64)

    def position(where: list[ir.Value]) -> ir.Value:
        number = indices.as_i64(e, where[0])
        return indices.as_i64(e, first_above(e, counts, number, total))

    positions = indices.from_positions(e, [wanted], dtypes.INT64, position)

    def coordinate(where: list[ir.Value], value: ir.Value) -> ir.Value:
        parts = e.unraveled(indices.to_index(value, dtypes.INT64), own)
        chosen = indices.picked(e, where[0], parts)
        if op.padded:
            inside = indices.compare(e, indices.SLT, where[1], count)
            chosen = indices.select(e, inside, chosen, 0)
        return indices.as_i64(e, chosen)

    return indices.from_positions(
        e, [t.rank, wanted], dtypes.INT64, coordinate, [positions], [(1,)]
    )


def _flags(e: LoweringContext, flat: ir.Value, dtype: DType, extents: Sequence[Extent]) -> ir.Value:
    """1 where an element is not 0 (NaN is not), as i64."""

    def body(_: list[ir.Value], value: ir.Value) -> ir.Value:
        x = widen(TypedScalar(value, dtype))
        b = ArithScalars(x.dtype, dtypes.INT64)
        return b.cast(b.cmp("ne", x, b.const(0, x.dtype)), dtypes.INT64).value

    return indices.from_positions(e, extents, dtypes.INT64, body, [flat], [(0,)])


def first_above(e: LoweringContext, counts: ir.Value, number: ir.Value, total: Extent) -> ir.Value:
    """Return the first index whose running count is above `number`.

    Bisection of a fixed step count.
    """
    index = ir.IndexType.get()
    if isinstance(total, int):
        steps: Extent = total.bit_length()
    else:
        i64 = ir.IntegerType.get_signless(64)
        zeros = math.CountLeadingZerosOp(arith.IndexCastOp(i64, total).result).result
        steps = e.sub(64, arith.IndexCastOp(index, zeros).result)
    loop = scf.ForOp(e.index(0), e.index(steps), e.index(1), [
        e.index(0), e.index(indices.last_of(e, total))
    ])  # fmt: skip
    with ir.InsertionPoint(loop.body):
        low, high = loop.inner_iter_args
        middle = e.div(e.add(low, high), 2)
        below = arith.CmpIOp(indices.SLE, indices.read(counts, [e.index(middle)]), number).result
        scf.YieldOp([
            indices.select(e, below, e.add(middle, 1), low),
            indices.select(e, below, high, middle),
        ])  # fmt: skip
    return loop.results[0]

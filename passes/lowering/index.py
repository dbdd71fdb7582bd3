"""Arithmetic on index values, and loops that read elements at computed indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg, scf, tensor
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import sliced_reads
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.expr import Extent, identity
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.scalar import Number, constant_of, signless

EQ, NE, SLT, SLE, SGT, SGE = range(6)  # arith.cmpi predicates


def compare(e: IndexBuilder, predicate: int, a: Extent, b: Extent) -> ir.Value:
    """Return an i1 comparison of signed index values."""
    return arith.CmpIOp(predicate, e.index(a), e.index(b)).result


def select(e: IndexBuilder, condition: ir.Value, a: Extent, b: Extent) -> ir.Value:
    """Return a where the condition holds, else b."""
    return arith.SelectOp(condition, e.index(a), e.index(b)).result


def clamp(e: IndexBuilder, x: Extent, low: Extent, high: Extent) -> Extent:
    """`x` inside of [low, high]; `low` where they cross."""
    return e.max(e.min(x, high), low)


def mirrored(e: IndexBuilder, x: Extent, last: Extent) -> Extent:
    """-1 is 1, last + 1 is last - 1; further rounds (an axis of dynamic extent) repeat."""
    period = e.max(e.mul(last, 2), 1)
    # the remainder of |x|: reflections are symmetric about 0
    inside = e.rem(e.max(x, e.sub(0, x)), period)
    return e.min(inside, e.sub(period, inside))


def ceil_div(e: IndexBuilder, a: Extent, b: int) -> Extent:
    """ceil(a / b) of a non-negative extent."""
    return a if b == 1 else e.div(e.add(a, b - 1), b)


def to_index(value: ir.Value, dtype: DType) -> ir.Value:
    """Return an integer element of `dtype` as an index.

    Unsigned ones beyond i64 become its largest.
    """
    if dtype.is_unsigned and dtype.bits == 64:
        most = constant_of(value.type, ir.IntegerAttr.get(value.type, 2**63 - 1))
        value = arith.MinUIOp(value, most).result
    op = arith.IndexCastUIOp if dtype.is_unsigned else arith.IndexCastOp
    return op(ir.IndexType.get(), value).result


def as_i64(e: IndexBuilder, x: Extent) -> ir.Value:
    """Return an index value as an i64 element."""
    return arith.IndexCastOp(ir.IntegerType.get_signless(64), e.index(x)).result


def normalized(e: IndexBuilder, value: ir.Value, extent: Extent, dtype: DType) -> ir.Value:
    """Return an integer element as an index inside of the extent: wrapped once, then clamped."""
    at = wrap(e, to_index(value, dtype), extent, dtype)
    return e.index(clamp(e, at, 0, last_of(e, extent)))


def wrap(e: IndexBuilder, x: ir.Value, extent: Extent, dtype: DType) -> ir.Value:
    """`x` with `extent` added where it is negative."""
    if dtype.is_unsigned:
        return x
    return select(e, compare(e, SLT, x, 0), e.add(x, extent), x)


def last_of(e: IndexBuilder, extent: Extent) -> Extent:
    """extent - 1."""
    return e.sub(extent, 1)


def picked(e: IndexBuilder, at: ir.Value, choices: Sequence[Extent]) -> Extent:
    """Return the choice of number `at`, which lies inside."""
    found = choices[0]
    for i, choice in enumerate(choices[1:], 1):
        found = select(e, compare(e, EQ, at, i), choice, found)
    return found


def in_range(e: LoweringContext, x: ir.Value, extent: Extent) -> ir.Value:
    """Return whether 0 <= x < extent: one unsigned comparison."""
    return arith.CmpIOp(6, x, e.index(extent)).result


def read(source: ir.Value, where: Sequence[ir.Value]) -> ir.Value:
    """Return one element; every index must lie inside, or the process may crash.

    An element of a slice is read from the sliced tensor (docs/iree-hazards.md, hazards 27 and 41).
    """
    source, at = sliced_reads.behind(source, where)
    return tensor.ExtractOp(source, at).result


def first_new_row(
    b: IndexBuilder, seqlens: ir.Value, t: TensorType, batch: Extent, count: Extent
) -> Extent:
    """Return the index of the first of `count` new rows of a cache's batch entry.

    seqlens, of type `t`: the rows of each entry, the new ones among them, less 1.
    """
    at = [b.index(batch), b.index(0)][: t.rank]
    return b.max(b.sub(b.add(to_index(read(seqlens, at), t.dtype), 1), count), 0)


def read_only_element(e: LoweringContext, source: ir.Value) -> ir.Value:
    """Return the one element of a tensor; the run ends with an error where it has none or more."""
    extents = e.extents(source)
    for d in extents:
        e.sizes.equal(d, 1)
    return read(source, [e.index(0)] * len(extents))


def read_safely(
    e: LoweringContext, source: ir.Value, where: Sequence[ir.Value], extents: Sequence[Extent]
) -> ir.Value:
    """Return one element, or 0 where the tensor has none: the indices are clamped by the caller.

    A tensor of dynamic extents can be empty, and then no index is inside.
    """
    dynamic = e.dynamic_values(extents)
    element = ir.RankedTensorType(source.type).element_type
    if not dynamic:
        return read(source, where)
    some = compare(e, SGT, dynamic[0], 0)
    for d in dynamic[1:]:
        some = arith.AndIOp(some, compare(e, SGT, d, 0)).result
    branch = scf.IfOp(some, [element], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([read(source, where)])
    with ir.InsertionPoint(branch.regions[1].blocks[0]):
        scf.YieldOp([zero_of(element)])
    return branch.results[0]


def true() -> ir.Value:
    """Return the i1 1."""
    i1 = ir.IntegerType.get_signless(1)
    return constant_of(i1, ir.IntegerAttr.get(i1, 1))


def zero_of(element: ir.Type) -> ir.Value:
    """Return the 0 of a signless element type."""
    integer = isinstance(element, ir.IntegerType)
    attribute = ir.IntegerAttr.get(element, 0) if integer else ir.FloatAttr.get(element, 0.0)
    return constant_of(element, attribute)


def from_positions(
    e: LoweringContext,
    extents: Sequence[Extent],
    dtype: DType,
    body: Callable[..., ir.Value],
    inputs: Sequence[ir.Value] = (),
    maps: Sequence[tuple[int | None, ...]] = (),
) -> ir.Value:
    """Return a tensor whose element at (i0, i1, ...) is `body([i0, i1, ...], *input elements)`.

    `maps` are the DimMaps of `inputs`. The body gives a value of the stored type.
    """
    rank = len(extents)
    init = e.empty(extents, dtype)

    def region(*args: ir.Value) -> ir.Value:
        where = [linalg.IndexOp(i).result for i in range(rank)]
        return body(where, *args[:-1])

    own = [e.dim_map(rank, m) for m in maps]
    return e.generic(
        list(inputs), [init], [*own, e.dim_map(rank, identity(rank))], [PARALLEL] * rank, region
    )[0]


def reduced(
    e: LoweringContext,
    extents: Sequence[Extent],
    length: Extent,
    dtype: DType,
    start: Number,
    step: Callable[[Sequence[ir.Value], ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """Return a tensor, each element of which is the last total of `step(where, i, total)`.

    i: each index below `length`, in no order. The totals begin with `start`.
    """
    rank = len(extents)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]
    maps = [ir.AffineMap.get(rank + 1, 0, [d[rank]]), ir.AffineMap.get(rank + 1, 0, d[:rank])]
    # never read; its extent is that of the loop over i
    span = e.empty([length], dtype)
    init = e.fill(extents, dtype, start)

    def body(_: ir.Value, total: ir.Value) -> ir.Value:
        where = [linalg.IndexOp(i).result for i in range(rank + 1)]
        return step(where[:rank], where[rank], total)

    iterators = [PARALLEL] * rank + [REDUCTION]
    return e.barrier(e.generic([span], [init], maps, iterators, body)[0], extents)


def alone(
    e: LoweringContext,
    kinds: Sequence[ir.Type],
    extents: Sequence[Sequence[Extent]],
    build: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Return the results of `build()` in a separate dispatch; inside of a region, without one.

    For ops of iree_linalg_ext and their operands: IREE would fuse or clone loops around them into
    their dispatch, where tiles would need a stack of dynamic size. `extents` are those of
    each result.
    """
    if e.in_region:
        return list(build())
    sizes = [v for own in extents for v in e.dynamic_values(own)]
    region = iree_ops.dispatch_region(kinds, sizes)
    try:
        with ir.InsertionPoint(region.regions[0].blocks.append()):
            iree_ops.flow_return(build())
    except Exception:
        region.erase()  # the caller may try another form
        raise
    return list(region.results)


def from_positions_alone(
    e: LoweringContext,
    extents: Sequence[Extent],
    dtype: DType,
    body: Callable[..., ir.Value],
    inputs: Sequence[ir.Value] = (),
    maps: Sequence[tuple[int | None, ...]] = (),
) -> ir.Value:
    """from_positions in a separate dispatch."""
    kind = ir.RankedTensorType.get(e.static_dims(extents), signless(dtype))

    def build() -> list[ir.Value]:
        return [from_positions(e, extents, dtype, body, inputs, maps)]

    return alone(e, [kind], [extents], build)[0]


def cast_alone(e: LoweringContext, x: ir.Value, source: DType, target: DType) -> ir.Value:
    """LoweringContext.cast_tensor in a separate dispatch."""
    if source is target:
        return x
    extents = e.extents(x)
    kind = ir.RankedTensorType.get(e.static_dims(extents), signless(target))
    return alone(e, [kind], [extents], lambda: [e.cast_tensor(x, source, target)])[0]

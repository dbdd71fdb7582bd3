"""IREE's iree_linalg_ext operations in generic form: gather, scatter, scan, topk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.index import alone
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.iree.buffer_views import copied
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, signless

Body = Callable[..., ir.Value]


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _built(
    name: str,
    operands: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    attributes: Mapping[str, ir.Attribute],
    kinds: Sequence[ir.Type] = (),
    body: Body | None = None,
    segments: Sequence[int] | None = None,
) -> list[ir.Value]:
    """Build an op of iree_linalg_ext; `body` gives what a region with arguments of `kinds` yields.

    segments: of the operands, without those that are written to.
    """
    op = iree_ops.build(
        f"iree_linalg_ext.{name}", [*operands, *inits], [v.type for v in inits],
        segments=segments, regions=0 if body is None else 1, attributes=attributes,
    )  # fmt: skip
    if body is not None:
        block = op.regions[0].blocks.append(*kinds, arg_locs=None)
        with ir.InsertionPoint(block):
            iree_ops.build("iree_linalg_ext.yield", [body(*block.arguments)])
    return list(op.results)


def _alone(
    e: LoweringContext,
    name: str,
    operands: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    extents: Sequence[Sequence[Extent]],
    attributes: Mapping[str, ir.Attribute],
    kinds: Sequence[ir.Type] = (),
    body: Body | None = None,
) -> list[ir.Value]:
    """Build an op in a dispatch of its own; extents: of its results."""
    segments = (len(operands), len(inits)) if len(inits) > 1 else None

    def build() -> list[ir.Value]:
        return _built(name, operands, inits, attributes, kinds, body, segments)

    return alone(e, [v.type for v in inits], extents, build)


def gather_slices(
    e: LoweringContext,
    data: ir.Value,
    where: ir.Value,
    axes: Sequence[int],
    extents: Sequence[Extent],
    dtype: DType,
) -> ir.Value:
    """Slices of `data` behind `axes` (its first) at index tuples that all lie inside.

    `where` holds the tuples in its last axis; for one axis it has none.
    """
    data, init = whole(e, data), e.empty(extents, dtype)
    at = {"dimension_map": ir.DenseI64ArrayAttr.get(list(axes))}
    return _alone(e, "gather", [data, where], [init], [extents], at)[0]


_RENAMING = (
    "tensor.cast",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "flow.tensor.reshape",
    "flow.tensor.tie_shape",
)


def whole(e: LoweringContext, x: ir.Value) -> ir.Value:
    """Return a column `x` in a new buffer: IREE 3.13 would read it in place, by strided gathers
    that it cannot translate.
    """
    return e.barrier(x, e.extents(x)) if is_column(x) and not e.in_region else x


def is_column(value: ir.Value) -> bool:
    """Return whether a value is a column slice of another one, in any shape."""
    while not isinstance(value.owner, ir.Block):
        owner = value.owner.operation
        if owner.name == "tensor.extract_slice":
            part, whole = (ir.RankedTensorType(v.type).shape for v in (value, owner.operands[0]))
            return part[1:] != whole[1:]
        if owner.name not in _RENAMING:
            return False
        value = owner.operands[0]
    return False


def _may_be_input(value: ir.Value) -> bool:
    """Return whether the value can be the memory of an input of a function.

    Copying loops are folded later, so the result of an op that reads a tensor of the same element
    type may be that tensor. So may a value that a branch or loop passes through (with dynamic
    extents it is copied).
    """
    todo, seen = [value], set[ir.Value]()
    while todo:
        x = todo.pop()
        if x in seen:
            continue
        seen.add(x)
        if isinstance(x.owner, ir.Block):
            if x.owner.owner.operation.name == "func.func":
                return True
            continue
        op = x.owner.operation
        if op.name == "hal.tensor.import":
            if ir.RankedTensorType(x.type).has_static_shape:
                return True
        elif op.name == "flow.dispatch.region":
            given = list(op.regions[0].blocks[0].operations[-1].operands)
            todo.append(given[list(op.results).index(x)])
        elif not op.name.startswith("iree_linalg_ext."):
            todo += [v for v in op.operands if _element_type(v) == _element_type(x)]
    return False


def _element_type(value: ir.Value) -> ir.Type | None:
    kind = value.type
    return kind.element_type if isinstance(kind, ir.RankedTensorType) else None


def source_of(value: ir.Value) -> ir.Operation | None:
    """Return the op that makes a value, through reshapes; None for an argument."""
    while not isinstance(value.owner, ir.Block):
        owner = value.owner.operation
        if owner.name not in _RENAMING:
            return owner
        value = owner.operands[0]
    return None


def _reads_nothing(value: ir.Value) -> bool:
    """Return whether a value is computed without reading a tensor, as a fill is."""
    source = source_of(value)
    if source is None:
        return False
    made, read = set[ir.Value](), set[ir.Value]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        made.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                made.update(block.arguments)
        read.update(v for v in op.operands if isinstance(v.type, ir.RankedTensorType))
        return ir.WalkResult.ADVANCE

    source.walk(visit)
    # constants and fills are folded into their readers
    constant = ("tensor.empty", "arith.constant")
    return source.name in constant or all(_reads_nothing(v) for v in read - made)


def _is_fill(value: ir.Value) -> bool:
    """Return whether all elements are one number, seen through changes of shape."""
    source = source_of(value)
    return source is not None and source.name == "linalg.fill"


def scatter(
    e: LoweringContext,
    into: ir.Value,
    where: ir.Value,
    updates: ir.Value,
    mask: ir.Value | None,
    axes: Sequence[int],
    body: Body,
    info: ir.Attribute | None = None,
) -> ir.Value:
    """`into` with `updates` at the tuples in `where` whose `mask` (if any) is set, in their order.

    `body(update, current)` gives the new element; tuples may repeat unless `info` says how GPU
    threads share them. Indices that are not masked out are in range. The program's inputs are
    copied, as IREE would write into the caller's memory (docs/iree-hazards.md, hazard 29). Tensors
    computed without reading one are copied too: IREE recomputes these, and one of two scatters
    would write into the other's result (hazard 33).
    """
    if _may_be_input(into) or _reads_nothing(into):
        into = copied(e, into, e.extents(into))
    if _is_fill(updates):  # otherwise it is copied to the dispatch's stack, whatever its size
        updates = e.barrier(updates, e.extents(updates))

    operands = [updates, where, *([] if mask is None else [mask])]
    return _scatter(e, operands, into, axes, body, info, are_unique=info is not None)


def updated(
    e: LoweringContext,
    into: ir.Value,
    where: ir.Value,
    updates: ir.Value,
    axes: Sequence[int],
    info: ir.Attribute | None,
) -> ir.Value:
    """Write `updates` into the memory of `into` at the tuples in `where`, which are unique.

    `into` may be a program's input. info: how GPU threads share the updates.
    """

    def newest(update: ir.Value, _: ir.Value) -> ir.Value:
        return update

    return _scatter(e, [updates, where], into, axes, newest, info, are_unique=True)


def _scatter(
    e: LoweringContext,
    operands: Sequence[ir.Value],
    into: ir.Value,
    axes: Sequence[int],
    body: Body,
    info: ir.Attribute | None,
    *,
    are_unique: bool,
) -> ir.Value:
    """Build a scatter in a dispatch of its own."""
    at = {
        "dimension_map": ir.DenseI64ArrayAttr.get(list(axes)),
        "unique_indices": ir.BoolAttr.get(are_unique),
        **({} if info is None else {"compilation_info": info}),
    }
    kinds = [ir.RankedTensorType(into.type).element_type] * 2
    return _alone(e, "scatter", operands, [into], [e.extents(into)], at, kinds, body)[0]


def scan(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    axis: int,
    extents: Sequence[Extent],
    *,
    inclusive: bool = True,
) -> ir.Value:
    """Return running sums along `axis` in `dtype`.

    The op's second result is not given: along an axis of one element it stays 0.
    """
    kept = [d for i, d in enumerate(extents) if i != axis]
    x = e.hidden(x)
    out, totals = e.empty(extents, dtype), e.fill(kept, dtype, 0)
    element = signless(dtype)

    def add(a: ir.Value, b: ir.Value) -> ir.Value:
        return ArithScalars(dtype, dtype).add(TypedScalar(a, dtype), TypedScalar(b, dtype)).value

    at = {"dimension": _i64(axis), "inclusive": ir.BoolAttr.get(inclusive)}
    kinds = [element, element]
    return _alone(e, "scan", [x], [out, totals], [extents, kept], at, kinds, add)[0]


def topk(
    e: LoweringContext,
    keys: ir.Value,
    dtype: DType,
    axis: int,
    extents: Sequence[Extent],
) -> ir.Value:
    """Return the indices (i32) of the largest of `keys` along `axis`, best first, of `extents`.

    `keys` are signed integers of a total order. Of equal keys the lower index comes first.
    """
    values = e.fill(extents, dtype, dtype.lowest())
    # an unused index is larger than all others, so that equal keys replace it
    places = e.fill(extents, dtypes.INT32, dtypes.INT32.highest())
    element = signless(dtype)

    def above(a: ir.Value, b: ir.Value) -> ir.Value:
        scalars = ArithScalars(dtype, dtypes.BOOL)
        return scalars.cmp("gt", TypedScalar(a, dtype), TypedScalar(b, dtype)).value

    at = {"dimension": _i64(axis)}
    kinds, inits = [element, element], [values, places]
    return _alone(e, "topk", [keys], inits, [extents, extents], at, kinds, above)[1]


def attention(
    e: LoweringContext,
    operands: Sequence[tuple[ir.Value, Sequence[int]]],
    scale: ir.Value,
    mask: Sequence[tuple[ir.Value, Sequence[int]]],
    out: Sequence[int],
    rank: int,
    t: TensorType,
    config: Mapping[str, ir.Attribute] | None = None,
    sizes: Sequence[Extent] | None = None,
) -> ir.Value:
    """softmax(scale * q k + mask) v; each tensor with the op's dims that its own are.

    `t` is the result's type, `sizes` its extents where some are dynamic. Scores are f32. config:
    attributes with the tiles that IREE takes.
    """
    init = [e.empty(list(t.dims) if sizes is None else sizes, t.dtype)]
    return _attention("attention", operands, scale, mask, init, [out], rank, config)[0]


def online_attention(
    e: LoweringContext,
    operands: Sequence[tuple[ir.Value, Sequence[int]]],
    scale: ir.Value,
    mask: Sequence[tuple[ir.Value, Sequence[int]]],
    out: Sequence[int],
    rank: int,
    init: Sequence[ir.Value],
    config: Mapping[str, ir.Attribute] | None = None,
) -> list[ir.Value]:
    """Compute unnormalised attention in f32: the sum of weighted rows, each row's largest score
    as a power of two, and the sum of weights, accumulated onto `init`.
    """
    outs = [out, out[:-1], out[:-1]]
    return _attention("online_attention", operands, scale, mask, init, outs, rank, config)


def no_keys(e: LoweringContext, dims: Sequence[Extent]) -> list[ir.Value]:
    """Return the initial state of online_attention; dims: of the weighted rows."""
    rows = [*dims[:-1]]
    return [
        e.fill(list(dims), dtypes.FLOAT, 0),
        # finite, else fully masked rows would become NaN, and so would the sum of parts
        e.fill(rows, dtypes.FLOAT, -3.4028234663852886e38),
        e.fill(rows, dtypes.FLOAT, 0),
    ]


def _attention(
    name: str,
    operands: Sequence[tuple[ir.Value, Sequence[int]]],
    scale: ir.Value,
    mask: Sequence[tuple[ir.Value, Sequence[int]]],
    init: Sequence[ir.Value],
    outs: Sequence[Sequence[int]],
    rank: int,
    config: Mapping[str, ir.Attribute] | None,
) -> list[ir.Value]:
    """Build an op of the kind; `outs`: the op's dims that each result has."""
    none: Sequence[int] = []
    read = [*operands, (scale, none), *mask]
    maps = [*(dims for _, dims in read), *outs]

    def indexing(dims: Sequence[int]) -> ir.Attribute:
        return ir.AffineMapAttr.get(
            ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d) for d in dims])
        )

    attributes = {"indexing_maps": ir.ArrayAttr.get([indexing(d) for d in maps]), **(config or {})}
    segments = 1, 1, 1, 1, len(mask), *([1] * len(init))

    def same(score: ir.Value) -> ir.Value:
        return score

    values, kinds = [v for v, _ in read], [signless(dtypes.FLOAT)]
    return _built(name, values, init, attributes, kinds, same, segments)

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
from mgx_mlir.passes.lowering.iree.buffer_views import copied
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, signless

Body = Callable[..., ir.Value]


def segments(*sizes: int) -> ir.Attribute:
    """Return the attribute of an op that has several variadic operands: how many each has."""
    return ir.DenseI32ArrayAttr.get(list(sizes))


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _region(op: ir.Operation, kinds: Sequence[ir.Type], body: Body) -> None:
    block = op.regions[0].blocks.append(*kinds, arg_locs=None)
    with ir.InsertionPoint(block):
        ir.Operation.create("iree_linalg_ext.yield", operands=[body(*block.arguments)])


def _line_by_line(e: LoweringContext, op: ir.Operation, rank: int, axis: int) -> None:
    """On GPUs a workgroup of one lane for each line along `axis`.

    IREE's own workgroup has many lanes, each of which does the whole op, wave after wave
    on what the one before has left: sums and places are then counted twice.
    """
    if e.options.target != "gpu":
        return
    lanes = 64 if e.options.arch.startswith("gfx9") else 32
    sizes = ", ".join("0" if i == axis else "1" for i in range(rank))
    op.attributes["compilation_info"] = ir.Attribute.parse(
        "#iree_codegen.compilation_info<"
        f"lowering_config = #iree_codegen.lowering_config<tile_sizes = [[{sizes}]]>, "
        "translation_info = <pipeline = #iree_gpu.pipeline<Distribute> "
        f"workgroup_size = [1, 1, 1] subgroup_size = {lanes}>>"
    )


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
    init = e.empty(extents, dtype)

    def build() -> Sequence[ir.Value]:
        return ir.Operation.create(
            "iree_linalg_ext.gather",
            results=[init.type],
            operands=[data, where, init],
            attributes={"dimension_map": ir.DenseI64ArrayAttr.get(list(axes))},
        ).results

    return alone(e, [init.type], [extents], build)[0]


_RENAMING = (
    "tensor.cast",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "flow.tensor.reshape",
    "flow.tensor.tie_shape",
)


def whole(e: LoweringContext, x: ir.Value) -> ir.Value:
    """`x`, a column in a buffer of its own: IREE 3.13 would read it where it lies, by gathers over
    strides that it cannot translate."""
    return e.barrier(x, e.extents(x)) if is_column(x) and not e.in_region else x


def is_column(value: ir.Value) -> bool:
    """Return whether the value is a part of each row of another one, whatever its shape."""
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

    Loops that copy are folded away later, so the result of an op that reads a tensor of the same
    element type may be that tensor; and so may what a branch or a loop handed on as it is (with
    run-time extents that is copied at its border).
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
    """Return what makes the value, seen through changes of shape; None for an argument."""
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
    # a constant is folded into what reads it, and so is a fill
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
) -> ir.Value:
    """`into` with `updates` at the tuples in `where` whose `mask` (if any) is set, in their order.

    `body(update, current)` gives the new element; tuples may repeat. Those that are not masked
    out lie inside. The program's inputs are copied: IREE would write into the caller's memory
    (docs/iree-hazards.md, hazard 29). So is what reads no tensor, which IREE computes again where
    it needs it: of two scatters one would write into the other's result (hazard 33).
    """
    element = ir.RankedTensorType(into.type).element_type
    if _may_be_input(into) or _reads_nothing(into):
        into = copied(e, into, e.extents(into))
    if _is_fill(updates):  # would be copied into the dispatch, onto its stack, whatever its size
        updates = e.barrier(updates, e.extents(updates))

    def build() -> Sequence[ir.Value]:
        op = ir.Operation.create(
            "iree_linalg_ext.scatter",
            results=[into.type],
            operands=[updates, where, *([] if mask is None else [mask]), into],
            attributes={
                "dimension_map": ir.DenseI64ArrayAttr.get(list(axes)),
                "unique_indices": ir.BoolAttr.get(False),
            },
            regions=1,
        )
        _region(op, [element, element], body)
        return op.results

    return alone(e, [into.type], [e.extents(into)], build)[0]


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

    def build() -> Sequence[ir.Value]:
        op = ir.Operation.create(
            "iree_linalg_ext.scan",
            results=[out.type, totals.type],
            operands=[x, out, totals],
            attributes={
                "dimension": _i64(axis),
                "inclusive": ir.BoolAttr.get(inclusive),
                "operandSegmentSizes": segments(1, 2),
            },
            regions=1,
        )
        _region(op, [element, element], add)
        _line_by_line(e, op, len(extents), axis)
        return op.results

    return alone(e, [out.type, totals.type], [extents, kept], build)[0]


def topk(
    e: LoweringContext,
    keys: ir.Value,
    dtype: DType,
    axis: int,
    extents: Sequence[Extent],
) -> ir.Value:
    """Return the places (i32) of the largest of `keys` along `axis`, best first, of `extents`.

    `keys` are signed integers of a total order. Of equal keys the lower place comes first.
    """
    values = e.fill(extents, dtype, dtype.lowest())
    # an unused place is behind every other one, so that equal keys replace it
    places = e.fill(extents, dtypes.INT32, dtypes.INT32.highest())
    element = signless(dtype)

    def above(a: ir.Value, b: ir.Value) -> ir.Value:
        scalars = ArithScalars(dtype, dtypes.BOOL)
        return scalars.cmp("gt", TypedScalar(a, dtype), TypedScalar(b, dtype)).value

    def build() -> Sequence[ir.Value]:
        op = ir.Operation.create(
            "iree_linalg_ext.topk",
            results=[values.type, places.type],
            operands=[keys, values, places],
            attributes={"dimension": _i64(axis), "operandSegmentSizes": segments(1, 2)},
            regions=1,
        )
        _region(op, [element, element], above)
        _line_by_line(e, op, len(extents), axis)
        return op.results

    return alone(e, [values.type, places.type], [extents, extents], build)[1]


def attention(
    e: LoweringContext,
    operands: Sequence[tuple[ir.Value, Sequence[int]]],
    scale: ir.Value,
    mask: Sequence[tuple[ir.Value, Sequence[int]]],
    out: Sequence[int],
    rank: int,
    t: TensorType,
    told: Mapping[str, ir.Attribute] | None = None,
    sizes: Sequence[Extent] | None = None,
) -> ir.Value:
    """softmax(scale * q k + mask) v; each tensor with the op's dims that its own are.

    `t` is the result's type, `sizes` its extents where some are dynamic. Scores are f32. told: what
    IREE is told of tiles.
    """
    init = [e.empty(list(t.dims) if sizes is None else sizes, t.dtype)]
    return _attention("attention", operands, scale, mask, init, [out], rank, told)[0]


def online_attention(
    e: LoweringContext,
    operands: Sequence[tuple[ir.Value, Sequence[int]]],
    scale: ir.Value,
    mask: Sequence[tuple[ir.Value, Sequence[int]]],
    out: Sequence[int],
    rank: int,
    init: Sequence[ir.Value],
    told: Mapping[str, ir.Attribute] | None = None,
) -> list[ir.Value]:
    """Compute attention in f32, not divided: the sum of weighted rows, for each row the largest
    score as a power of two, and the sum of weights, of what `init` has and these keys."""
    outs = [out, out[:-1], out[:-1]]
    return _attention("online_attention", operands, scale, mask, init, outs, rank, told)


def no_keys(e: LoweringContext, dims: Sequence[Extent]) -> list[ir.Value]:
    """Return what online_attention begins with; dims: of the weighted rows."""
    rows = [*dims[:-1]]
    return [
        e.fill(list(dims), dtypes.FLOAT, 0),
        # no infinity: rows of which all is masked would get NaN, and so would the sum of parts
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
    told: Mapping[str, ir.Attribute] | None,
) -> list[ir.Value]:
    """Build an op of the kind; `outs`: the op's dims that each result has."""
    none: Sequence[int] = []
    read = [*operands, (scale, none), *mask]
    maps = [*(dims for _, dims in read), *outs]

    def indexing(dims: Sequence[int]) -> ir.Attribute:
        return ir.AffineMapAttr.get(
            ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d) for d in dims])
        )

    op = ir.Operation.create(
        f"iree_linalg_ext.{name}",
        results=[v.type for v in init],
        operands=[*(v for v, _ in read), *init],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([indexing(d) for d in maps]),
            "operandSegmentSizes": segments(1, 1, 1, 1, len(mask), *([1] * len(init))),
            **(told or {}),
        },
        regions=1,
    )

    def same(score: ir.Value) -> ir.Value:
        return score

    _region(op, [signless(dtypes.FLOAT)], same)
    return list(op.results)

"""Pointwise ops that read or make 8-bit integers as vector loops: quantising and dequantising.

The dims behind the last one that an operand varies along by itself count as one: vectors then lie
along all elements of a tensor with one scale, or of a channel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.fused import PointwiseKernel
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import ExprSite, KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.products.dot import coordinates
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Extent,
    Leaf,
    View,
    behind_views,
    compose,
    identity,
)
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

BYTES = (dtypes.INT8, dtypes.UINT8)
REGISTERS = 4  # of f32 that are computed together: one of bytes


@dataclass(frozen=True)
class _Plan:
    """The results of a kernel as expressions, and the types that they are stored in."""

    results: Sequence[Expr]
    stored: Sequence[DType]


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel of pointwise ops that reads or makes 8-bit integers."""
    if not is_a(site.op, PointwiseKernel):
        return Refusal("it is no kernel of pointwise ops")
    members = site.members
    if not any(_is_bytes(v) for o in members for v in (*o.operands, *o.results)):
        return Refusal("it has no 8-bit integers")
    with e.kernel():
        for o in members:
            if not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in members[-1].operands]
    return _planned(results, site.stored)


def match_op(e: LoweringContext, site: ExprSite) -> _Plan | Refusal:
    """Take a pointwise op outside of kernels that reads or makes 8-bit integers."""
    x = site.x
    assert isinstance(x, Compute)
    if not any(t.dtype in BYTES for t in (x.type, *(a.type for a in x.args))):
        return Refusal("it has no 8-bit integers")
    return _planned([x], [x.type.dtype])


def _planned(results: Sequence[Expr], stored: Sequence[DType]) -> _Plan | Refusal:
    t = results[0].type
    if not t.rank:
        return Refusal("it is a scalar")
    if 0 in t.dims:
        return Refusal("it has no elements")
    # a stand-in of the same type: no transpose is made before the kernel is taken
    seen = [_turned(x, lambda x, source: Leaf(x.type, source.value)) for x in results]
    full = _leaf_of_all(seen, _leaves(seen))
    if full is None:
        return Refusal("no operand has all of its dims")
    reason = Epilogue(seen, _no_sums(t, full), stored).refusal
    return _Plan(results, stored) if reason is None else Refusal(reason)


def _is_bytes(v: ir.Value) -> bool:
    return isinstance(v.type, ir.RankedTensorType) and TensorType.of(v).dtype in BYTES


def _leaves(results: Sequence[Expr]) -> dict[tuple[int, DimMap], Leaf]:
    """Return the tensors that expressions of the same dims read, and how."""
    leaves: dict[tuple[int, DimMap], Leaf] = {}
    for x in results:
        _visit(x, identity(x.type.rank), leaves, set())
    return leaves


def _leaf_of_all(results: Sequence[Expr], leaves: dict[tuple[int, DimMap], Leaf]) -> Leaf | None:
    """Return a tensor that is read along all dims of the results, if any."""
    whole = identity(results[0].type.rank)
    return next((x for (_, m), x in leaves.items() if m == whole), None)


def _no_sums(t: TensorType, full: Leaf) -> Leaf:
    """Return the stand-in for an epilogue's sums, of which such a kernel has none."""
    return Leaf(t.with_dtype(dtypes.FLOAT), full.value)


def build(e: LoweringContext, site: KernelSite | ExprSite, plan: _Plan) -> list[ir.Value]:
    """Build the results in one dispatch."""
    results = [_turned(x, lambda x, _: Leaf(x.type, e.tensor(x))) for x in plan.results]
    isa, t, leaves = site.isa, results[0].type, _leaves(results)
    full = _leaf_of_all(results, leaves)
    assert full is not None
    epilogue = Epilogue(results, _no_sums(t, full), plan.stored)
    extents = e.extents(full.value)
    first = _joined(t.rank, leaves)
    whole = {x.value for (_, m), x in leaves.items() if m == identity(t.rank)}
    if any(x.value in whole and m != identity(t.rank) for (_, m), x in leaves.items()):
        first = t.rank - 1
    columns: Extent = e.product(extents[first:])
    lead = extents[:first]
    one: list[Extent] = [1] * (t.rank - 1 - first)
    inputs = [
        views.reshaped(e, v, [*lead, *one, columns]) if v in whole and one else v
        for v in epilogue.inputs
    ]
    made = _dispatch(
        isa, epilogue, inputs, ([*lead], columns), len(one), list(epilogue.stored),
        e.product(lead) if lead else 1,
    )  # fmt: skip
    return [views.reshaped(e, v, extents) for v in made]


def _turned(x: Expr, transposed: Callable[[Expr, Leaf], Leaf]) -> Expr:
    """Return an expression that reads tensors along its lanes; others are `transposed` ahead."""
    if isinstance(x, Compute):
        return Compute(x.type, x.cls, x.attributes, [_turned(a, transposed) for a in x.args])
    source, m = behind_views(x)
    if isinstance(source, Leaf) and x.type.rank - 1 in m[:-1]:
        return transposed(x, source)
    return x


KERNEL = KernelRule("byte_elementwise", (), match, build)
OP = KernelRule("byte_op", (), match_op, build)


def _visit(
    x: Expr, m: DimMap, leaves: dict[tuple[int, DimMap], Leaf], seen: set[tuple[int, DimMap]]
) -> None:
    """Find the tensors that an expression reads, and how."""
    if (id(x), m) in seen:
        return
    seen.add((id(x), m))
    if isinstance(x, Leaf):
        leaves[(id(x), m)] = x
    elif isinstance(x, View):
        _visit(x.source, compose(m, x.map), leaves, seen)
    elif isinstance(x, Compute):
        for a in x.args:
            _visit(a, m, leaves, seen)


def _joined(rank: int, leaves: dict[tuple[int, DimMap], Leaf]) -> int:
    """Return the first of the dims that count as one."""
    used = {i for (_, m) in leaves if m != identity(rank) for i in m if i is not None}
    # a read of an extent of 1 through its own dim would go past its end
    return min(rank - 1, max(used, default=-1) + 1)


def _dispatch(
    isa: Isa, epilogue: Epilogue, inputs: Sequence[ir.Value],
    dims: tuple[Sequence[Extent], Extent], ones: int, stored: Sequence[DType], rows: Extent,
) -> list[ir.Value]:  # fmt: skip
    """Make the loops over results of [rows, columns]."""
    lead, columns = dims
    lanes = REGISTERS * isa.lanes
    wide = GROUP_ELEMENTS
    high = 1
    if isinstance(columns, int):
        wide = min(columns, wide)
        high = max(1, GROUP_ELEMENTS // wide)
    if isinstance(rows, int):
        high = min(high, rows)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        row, column = k.at
        all_rows, all_columns = k.inner(rows), k.inner(columns)
        tall = _part(k, all_rows, row, high)
        broad = _part(k, all_columns, column, wide)

        def one_row(r: Index, tiles: Sequence[ir.Value]) -> list[ir.Value]:
            at = coordinates(k, k.add(row, r), lead)

            def some(c: Index, tail: bool, tiles: Sequence[ir.Value]) -> list[ir.Value]:
                reads: dict[Hashable, ir.Value] = {}
                where = [*at, *[0] * ones, k.add(column, c)]
                sums = k.splat(0.0, lanes)
                found = epilogue.emit(k, k.inputs, sums, where, reads, masked=tail)
                return [
                    k.write(v, t, [r, c], masked=tail) for v, t in zip(found, tiles, strict=True)
                ]

            return k.along(broad, lanes, list(tiles), some)

        tiles = [k.empty((tall, broad), d) for d in stored]
        if tall == 1:
            tiles = one_row(0, tiles)
        else:
            tiles = k.loop(0, tall, 1, tiles, one_row)
        return [ResultTile(t, (row, column), (tall, broad)) for t in tiles]

    return dispatch(
        inputs,
        [((rows, columns), d) for d in stored],
        [(rows, high), (columns, wide)],
        body,
        [d for d in lead if not isinstance(d, int)],
    )


def _part(k: WorkgroupBuilder, extent: Index, start: Index, step: int) -> Index:
    """Return how much of an extent a work-group has."""
    if isinstance(extent, int) and extent % step == 0:
        return step
    return k.min(step, k.sub(extent, start))

"""Tensors of lazy expressions: those of equal dims are computed by one linalg.generic."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.context import PARALLEL, LoweringContext
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Leaf,
    Splat,
    View,
    compose,
    identity,
)
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed, constant, narrow, widen


def materialized(e: LoweringContext, xs: Sequence[Expr], *, joined: bool = False) -> list[ir.Value]:
    """Make tensors of expressions of the same dims, the computed ones by one generic.

    `joined`: views are made by that generic too, as a dispatch region cannot have two parallel
    loops.
    """
    made: dict[int, ir.Value] = {}
    together: list[Expr] = []
    for x in dict.fromkeys(xs):
        if isinstance(x, Leaf):
            made[id(x)] = x.value
        elif isinstance(x, Compute) and x.made:
            made[id(x)] = x.made.value
        elif isinstance(x, Compute) or joined:
            together.append(x)
        elif isinstance(x, Splat):
            made[id(x)] = e.fill(x.extents, x.type.dtype, x.number)
        else:
            assert isinstance(x, View)
            made[id(x)] = x.make() if x.make else _loop_of(e, [x])[0]
    if together:
        for x, value in zip(together, _loop_of(e, together), strict=True):
            made[id(x)] = value
            if isinstance(x, Compute):
                x.made = Leaf(x.type, value)
    return [made[id(x)] for x in xs]


def _loop_of(e: LoweringContext, xs: Sequence[Expr]) -> list[ir.Value]:
    rank = xs[0].type.rank
    table: dict[tuple[ir.Value, DimMap], tuple[Leaf, DimMap]] = {}

    def gather(x: Expr, m: DimMap, seen: set[tuple[int, DimMap]]) -> None:
        if (id(x), m) in seen:
            return
        seen.add((id(x), m))
        if isinstance(x, Compute) and x.made is not None:
            x = x.made
        if isinstance(x, Leaf):
            table.setdefault((x.value, m), (x, m))
        elif isinstance(x, View):
            gather(x.source, compose(m, x.map), seen)
        elif isinstance(x, Compute):
            for a in x.args:
                gather(a, m, seen)

    seen: set[tuple[int, DimMap]] = set()
    for x in xs:
        gather(x, identity(rank), seen)
    order = list(table)
    inputs = [table[k][0].value for k in order]
    maps = [e.dim_map(rank, table[k][1]) for k in order]
    inits = [e.empty(e.expr_extents(x), x.type.dtype) for x in xs]
    yielded: list[ir.Value] = []
    readers = [e.reader(table[k][0].value, table[k][0].type.dtype) for k in order]
    # rounded rows of f32 are stored in the form of reads
    wide = any(table[k][0].type.dtype is dtypes.FLOAT for k in order)
    writers = [
        e.reader(v, x.type.dtype if wide else dtypes.FLOAT) for v, x in zip(inits, xs, strict=True)
    ]

    def region(*args: ir.Value) -> list[ir.Value]:
        scalars = {
            k: widen(read(TypedScalar(a, table[k][0].type.dtype)))
            for k, a, read in zip(order, args, readers, strict=False)
        }
        memo: dict[tuple[int, DimMap], TypedScalar] = {}

        def value(x: Expr, m: DimMap) -> TypedScalar:
            key = (id(x), m)
            if key in memo:
                return memo[key]
            if isinstance(x, Compute) and x.made is not None:
                found = scalars[(x.made.value, m)]
            elif isinstance(x, Leaf):
                found = scalars[(x.value, m)]
            elif isinstance(x, Splat):
                found = constant(x.number, computed(x.type.dtype))
            elif isinstance(x, View):
                found = value(x.source, compose(m, x.map))
            else:
                assert isinstance(x, Compute)
                found = e.scalar_of(x, [value(a, m) for a in x.args])
            memo[key] = found
            return found

        made = (narrow(value(x, identity(rank)), x.type.dtype) for x in xs)
        yielded.extend(write(v).value for write, v in zip(writers, made, strict=True))
        return yielded

    results = e.generic(
        inputs,
        inits,
        [*maps, *([e.dim_map(rank, identity(rank))] * len(xs))],
        [PARALLEL] * rank,
        region,
    )
    first = {v: i for i, v in reversed(list(enumerate(yielded)))}
    if len(first) == len(xs):
        return results
    # merge equal results, as a region with an anchor and two equal results is wrong
    wanted = [first[v] for v in yielded]
    results[0].owner.erase()
    kept = sorted(set(wanted))
    again = _loop_of(e, [xs[i] for i in kept])
    return [again[kept.index(i)] for i in wanted]

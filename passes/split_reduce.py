"""split_reduce: long reductions to few results in parallel parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise
from mgx_mlir.core.shapes import TensorType, product
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

_DEPTH = 16  # most pointwise ops that the split is moved before


@pattern(NumberReduction)
def split_reduce(op: NumberReduction, rw: Rewriter) -> Replacement:
    """reduce(x) of n elements -> reduce(reduce(x as g groups of n / g))

    Pointwise ops that only the reduction reads are moved after the split, to stay in one kernel
    with the first reduction.
    """
    t, out = TensorType.of(op.input), TensorType.of(op.out)
    if op.axes_tensor is not None or not t.is_static or 0 in t.dims:
        return no_match("{} or its axes are known at run time only, or it is empty", t)
    if t.dtype not in (dtypes.FLOAT, dtypes.HALF, dtypes.BF16):
        return no_match("{} is not a float of 16 or 32 bits", t.dtype)
    axes: list[int] = sorted(a % t.rank for a in op.axes) or list(range(t.rank))
    # extents of 1 may be between
    first, last = axes[0], axes[-1]
    if any(t.dims[a] != 1 for a in range(first, last) if a not in axes):
        return no_match("the reduced axes {} are not adjacent", axes)
    n = product(t.dims[a] for a in axes)
    if n < rw.options.split_size:
        return no_match("it reduces {} elements, split-size is {}", n, rw.options.split_size)
    if out.elements > rw.options.max_results:
        return no_match("{} results are parallel enough", out.elements)
    most = min(rw.options.groups, n // 2)
    groups = next((g for g in range(most, 1, -1) if n % g == 0), None)
    if groups is None:
        return no_match("no number of groups up to {} divides {}", most, n)
    # partial results of 16 bits would be rounded
    x, wide = op.input, t.dtype
    if wide.is_low_precision:
        wide = dtypes.FLOAT
    lead, tail = t.dims[:first], t.dims[last + 1 :]
    x = _reshaped(rw, x, (*lead, groups, n // groups, *tail), _DEPTH)
    if wide is not t.dtype:
        x = rw.op("convert", x, target_type=wide)
    parts = rw.op(op.mnemonic, x, axes=[first + 1])
    parts = rw.op("reshape", parts, dims=[*lead, groups, *tail])
    whole = rw.op(op.mnemonic, parts, axes=[first])
    if wide is not t.dtype:
        overflow = True if t.dtype.size > 1 else None
        whole = rw.op("convert", whole, target_type=t.dtype, overflow=overflow)
    return rw.op("reshape", whole, dims=list(out.dims))


def _reshaped(rw: Rewriter, v: ir.Value, dims: tuple[int, ...], depth: int) -> ir.Value:
    """Build `v` with other dims; single-use pointwise ops are rebuilt with these."""
    f = defined_by(v) if depth and has_one_use(v) else None
    if f is None or not isinstance(f, Pointwise) or len(f.operation.regions):
        return rw.op("reshape", v, dims=list(dims))
    new: dict[ir.Value, ir.Value] = {}
    for x in f.operation.operands:
        if x not in new:
            twice = list(f.operation.operands).count(x) > 1
            new[x] = _reshaped(rw, x, dims, 0 if twice else depth - 1)
    operands = [new[x] for x in f.operation.operands]
    return rebuild(f, operands, TensorType.of(v).with_dims(dims))


@dataclass(frozen=True)
class SplitReduce(PatternPass):
    """Reduce many elements to few results in groups, then the results of the groups.

    MIGraphX makes a `split_fused_reduce` kernel whose workgroups add into one result. Here the two
    steps are separate ops, each a kernel on any target. Nothing is added atomically, so results are
    deterministic. Sums are added in another order.
    """

    name: ClassVar[str] = "split_reduce"
    patterns: ClassVar[tuple[Pattern, ...]] = (split_reduce,)
    split_size: int = option(65280, "reduced elements from this on are split")
    groups: int = option(256, "groups at most")
    max_results: int = option(64, "most results for which it pays off")

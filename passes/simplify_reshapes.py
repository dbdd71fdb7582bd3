"""simplify_reshapes: chains of views, slices and concatenations in their shortest form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.passes import PatternPass
from mgx_mlir.core.pattern import Rewriter, defined_by, no_match, pattern
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.shape_chain import VIEWS, Step, extents, steps_for, trace

_SHAPE_OPS = tuple(sorted(VIEWS))
# over extents of 1 these give their operand back
_REDUCES = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")


# ---- ops that do nothing ------------------------------------------------------------------------


@pattern(
    "reshape", "reshape_lazy", "squeeze", "unsqueeze", "flatten", "transpose", "contiguous",
    "broadcast", "multibroadcast", "scalar", "slice", "step", "pad", "concat", *_REDUCES,
    benefit=3,
)  # fmt: skip
def find_nop_reshapes(op: Any, rw: Rewriter) -> Any:
    """view(x : T) : T -> x where no element moves"""
    x = op.operands[0]
    if x.type != op.results[0].type:
        return no_match("{} becomes {}", x.type, op.results[0].type)
    name = op.operation.name.removeprefix("migraphx.")
    dims = TensorType.of(x).dims
    if name == "transpose":
        moving = [p for p in op.permutation if dims[p] != 1]
        return x if moving == sorted(moving) else no_match("{} moves axes", op.permutation)
    if name in _REDUCES:
        axes = op.axes or range(len(dims))
        ones = len(op.operands) == 1 and all(dims[a] == 1 for a in axes)
        return x if ones else no_match("it reduces more than one element")
    if name == "step":
        return x if all(s == 1 for s in op.steps) else no_match("steps {}", op.steps)
    if name in ("concat", "pad", "contiguous"):
        same = name != "concat" or len(op.operands) == 1
        return x if same else no_match("it has {} operands", len(op.operands))
    if len(op.operands) > 1 and name in ("slice", "reshape"):
        return no_match("its bounds are known at run time only")
    # one unknown extent is what the known ones leave of the elements, two may trade places
    if sum(d == DYN for d in dims) > (0 if name in ("slice", "multibroadcast", "broadcast") else 1):
        return no_match("{} has unknown extents", x.type)
    return x


@pattern("flatten")
def find_flatten(op: Any, rw: Rewriter) -> Any:
    """flatten(x) -> reshape(x)"""
    t = TensorType.of(op.result)
    if t.dims.count(DYN) > 1 or 0 in t.dims:
        return no_match("reshape cannot say dims {}", t.dims)
    return rw.op("reshape", op.input, dims=[-1 if d == DYN else d for d in t.dims])


# ---- chains of views ----------------------------------------------------------------------------


@pattern("transpose", benefit=2)
def find_transpose(op: Any, rw: Rewriter) -> Any:
    """transpose(transpose(x, p), q) -> transpose(x, p[q])"""
    inner = rw.defining(op.input, "transpose")
    if inner is None:
        return no_match("input is not a transpose")
    permutation = inner.permutation
    return rw.op("transpose", inner.input, permutation=[permutation[i] for i in op.permutation])


@pattern(*_SHAPE_OPS)
def find_nested_shape_transforms(op: Any, rw: Rewriter) -> Any:
    """view(...view(x)) -> the fewest reshapes, transposes and broadcasts of x"""
    if defined_by(op.operands[0], *_SHAPE_OPS) is None:
        return no_match("it is the first view of its chain")
    if any(use.owner.name in VIEWS for use in op.results[0].uses):
        return no_match("it is not the last view of its chain")
    found = trace(op.results[0])
    if found is None:
        return no_match("{} has unknown or empty extents", op.results[0].type)
    source, m, ops = found
    if len(ops) < 2:
        return no_match("it cannot join the view before it")
    steps = steps_for(TensorType.of(source).dims, m)
    if len(steps) >= len(ops):
        return no_match("{} views are the fewest", len(ops))
    rw.merge_location(*ops[:-1])
    for step in steps:
        source = step.build(rw, source)
    return source


# ---- slices and concatenations ------------------------------------------------------------------


def _bounds(op: Any) -> list[tuple[int, int]] | None:
    """The range that a slice takes of every axis; None where it is not known here."""
    dims = TensorType.of(op.operands[0]).dims
    if len(op.operands) > 1 or DYN in dims or op.axes is None or op.starts is None:
        return None
    out = [(0, d) for d in dims]
    for axis, start, end in zip(op.axes, op.starts, op.ends, strict=True):
        low, high, _ = slice(start, end).indices(dims[axis])
        out[axis] = (low, max(low, high))
    return out


def _slice(rw: Rewriter, x: ir.Value, bounds: Sequence[tuple[int, int]]) -> ir.Value:
    """`x` cut to bounds; `x` itself where they are all of it."""
    cut = [
        (i, low, high)
        for i, ((low, high), d) in enumerate(zip(bounds, rw.dims(x), strict=True))
        if (low, high) != (0, d)
    ]
    if not cut:
        return x
    axes, starts, ends = zip(*cut, strict=True)
    return rw.op("slice", x, axes=axes, starts=starts, ends=ends)


@pattern("slice", benefit=2)
def find_nested_slice(op: Any, rw: Rewriter) -> Any:
    """slice(slice(x)) -> slice(x)"""
    inner = rw.defining(op.operands[0], "slice")
    if inner is None:
        return no_match("input is not a slice")
    outer, first = _bounds(op), _bounds(inner)
    if outer is None or first is None:
        return no_match("bounds are known at run time only")
    bounds = [(f[0] + o[0], f[0] + o[1]) for f, o in zip(first, outer, strict=True)]
    return _slice(rw, inner.operands[0], bounds)


@pattern("slice")
def find_concat_slice(op: Any, rw: Rewriter) -> Any:
    """slice(concat(..., x, ...)) -> slice(x), or the concat of the operands it takes from"""
    inner = rw.defining(op.operands[0], "concat")
    if inner is None:
        return no_match("input is not a concat")
    bounds = _bounds(op)
    if bounds is None:
        return no_match("bounds are known at run time only")
    axis = inner.axis % len(bounds)
    low, high = bounds[axis]
    taken: list[ir.Value] = []
    at = begin = 0
    for x in inner.operands:
        extent = TensorType.of(x).dims[axis]
        if at < high and at + extent > low:
            begin = begin if taken else at
            taken.append(x)
        at += extent
    if not taken or len(taken) == len(inner.operands):
        return no_match("it takes from {} of {} operands", len(taken), len(inner.operands))
    bounds[axis] = (low - begin, high - begin)
    joined = taken[0] if len(taken) == 1 else rw.op("concat", taken, axis=axis)
    return _slice(rw, joined, bounds)


@pattern("concat")
def find_nested_concat(op: Any, rw: Rewriter) -> Any:
    """concat(concat(x, y), z) -> concat(x, y, z) along one axis"""
    axis = op.axis % TensorType.of(op.results[0]).rank
    operands: list[ir.Value] = []
    nested = False
    for x in op.operands:
        inner = defined_by(x, "concat")
        if inner is not None and inner.axis % TensorType.of(x).rank == axis:
            rw.merge_location(inner)
            operands += inner.operands
            nested = True
        else:
            operands.append(x)
    if not nested:
        return no_match("no operand is a concat along axis {}", axis)
    return rw.op("concat", operands, axis=axis)


@dataclass(frozen=True)
class SimplifyReshapes(PatternPass):
    """Cancel and merge views, slices and concatenations."""

    name: ClassVar[str] = "simplify_reshapes"
    patterns = (
        find_nop_reshapes,
        find_flatten,
        find_transpose,
        find_nested_shape_transforms,
        find_nested_slice,
        find_concat_slice,
        find_nested_concat,
    )


__all__ = ["SimplifyReshapes", "Step", "extents"]

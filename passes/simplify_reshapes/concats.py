"""Patterns of simplify_reshapes on concatenations: nested, and of equal views."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.dialects.migraphx.views import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from mgx_mlir.passes.analysis.view_chains import Dims
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)


@pattern(Concat)
def find_nested_concat(op: Concat, rw: Rewriter) -> Replacement:
    """concat(concat(x, y), z) -> concat(x, y, z) along one axis"""
    axis = op.axis % TensorType.of(op.results[0]).rank
    operands: list[ir.Value] = []
    nested = False
    for x in op.operands:
        inner = defined_by(x, Concat)
        if inner is not None and inner.axis % TensorType.of(x).rank == axis:
            rw.merge_location(inner)
            operands += inner.operands
            nested = True
        else:
            operands.append(x)
    if not nested:
        return no_match("no operand is a concat along axis {}", axis)
    return rw.op("concat", operands, axis=axis)


def _equal_views(op: ir.Operation, *kinds: type[Op]) -> list[Op] | str:
    """Return the single-use views that a concat reads; or why they cannot move after it."""
    if len(op.operands) < 2:
        return "it has fewer than two operands"
    found = [defined_by(x, *kinds) for x in op.operands]
    views = [v for v in found if v is not None and len(v.operands) == 1]
    if len(views) != len(found):
        return "not every operand is such a view"
    if not all(has_one_use(x) for x in op.operands):
        return "an operand has other users"
    if any(is_a(use.owner, Slice) for use in op.results[0].uses):
        # find_concat_slice removes the concat, if it is not hidden by the move
        return "it is sliced again"
    return views


def _sources(views: Sequence[Any]) -> list[ir.Value]:
    return [v.operands[0] for v in views]


@pattern(Concat)
def find_concat_transpose(op: Concat, rw: Rewriter) -> Replacement:
    """concat(transpose(x), transpose(y)) -> transpose(concat(x, y)), one permutation"""
    views = _equal_views(op, Transpose)
    if isinstance(views, str):
        return no_match(views)
    permutation = list(views[0].permutation)
    if any(list(v.permutation) != permutation for v in views):
        return no_match("the permutations differ")
    rw.merge_location(*views)
    axis = permutation[op.axis % len(permutation)]
    joined = rw.op("concat", _sources(views), axis=axis)
    return rw.op("transpose", joined, permutation=permutation)


@pattern(Concat)
def find_concat_reshape(op: Concat, rw: Rewriter) -> Replacement:
    """concat(reshape(x), reshape(y)) -> reshape(concat(x, y)), x and y equal apart from an axis"""
    views = _equal_views(op, Reshape, Squeeze, Unsqueeze, Flatten)
    if isinstance(views, str):
        return no_match(views)
    out = TensorType.of(op.results[0]).dims
    dims = [TensorType.of(v.operands[0]).dims for v in views]
    if DYN in out or 0 in out or any(DYN in d or 0 in d for d in dims):
        return no_match("dims are unknown or empty")
    axis = _axis_behind(dims, prod(out[: op.axis % len(out)]))
    if axis is None:
        return no_match("the reshaped tensors differ in more than one axis, or the axis is split")
    rw.merge_location(*views)
    return rw.op("reshape", rw.op("concat", _sources(views), axis=axis), dims=out)


def _axis_behind(dims: Sequence[Dims], before: int) -> int | None:
    """Return the axis, after `before` elements, to concatenate along instead."""
    first = dims[0]
    for axis in range(len(first)):
        if prod(first[:axis]) == before and all(
            len(d) == len(first) and d[:axis] == first[:axis] and d[axis + 1 :] == first[axis + 1 :]
            for d in dims
        ):
            return axis
    return None


@pattern(Concat)
def find_concat_multibroadcasts(op: Concat, rw: Rewriter) -> Replacement:
    """concat(broadcast(x), broadcast(y)) -> broadcast(concat(x, y)) along an axis of x and y"""
    views = _equal_views(op, Multibroadcast, Broadcast)
    if isinstance(views, str):
        return no_match(views)
    out = TensorType.of(op.results[0]).dims
    own = [TensorType.of(v.operands[0]).dims for v in views]
    if DYN in out or any(DYN in d for d in own):
        return no_match("dims are unknown")
    if len({type(v) for v in views}) > 1 or len({len(d) for d in own}) > 1:
        return no_match("the broadcasts differ")
    aligned = is_a(views[0], Broadcast)
    begins = {v.axis if aligned else len(out) - len(own[0]) for v in views}
    begin = min(begins)
    axis = op.axis % len(out) - begin
    if len(begins) > 1 or not 0 <= axis < len(own[0]):
        return no_match("axis {} is one that the broadcasts add", op.axis)
    for v, d in zip(views, own, strict=True):
        if d[axis] != TensorType.of(v.result).dims[begin + axis]:
            return no_match("axis {} is repeated", op.axis)
        if d[:axis] + d[axis + 1 :] != own[0][:axis] + own[0][axis + 1 :]:
            return no_match("the broadcast tensors differ in more than one axis")
    rw.merge_location(*views)
    joined = rw.op("concat", _sources(views), axis=axis)
    if aligned:
        return rw.op("broadcast", joined, axis=begin, out_lens=out)
    return rw.op("multibroadcast", [joined], out_lens=out)

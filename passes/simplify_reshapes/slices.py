"""Patterns of simplify_reshapes on slices: nested, of concatenations, with views around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.attention import ConcatPastPresent
from mgx_mlir.dialects.migraphx.movement import Concat, Slice, slice_bounds
from mgx_mlir.dialects.migraphx.views import ReshapeOp, Transpose
from mgx_mlir.passes.analysis.view_chains import Dims
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_no_use,
    has_one_use,
    no_match,
    pattern,
)

_MANY = 32  # most users of a value


# ---- what a slice takes -------------------------------------------------------------------------


def bounds_of(op: ir.OpView) -> list[tuple[int, int]] | None:
    """Return the range that a slice takes of every axis; None where it is dynamic."""
    dims = TensorType.of(op.operands[0]).dims
    if len(op.operands) > 1 or DYN in dims or op.axes is None or op.starts is None:
        return None
    out = [(0, d) for d in dims]
    for axis, start, end in zip(op.axes, op.starts, op.ends, strict=True):
        at: int = axis
        out[at] = slice_bounds(start, end, dims[at])
    return out


class Cut(NamedTuple):
    """A slice along one axis: elements low to high (exclusive) of `extent`."""

    axis: int
    low: int
    high: int
    extent: int


def cut_of(op: ir.OpView) -> Cut | None:
    """Return the one axis that a slice takes a part of, and the part; None where it is not one."""
    bounds = bounds_of(op)
    if bounds is None:
        return None
    dims = TensorType.of(op.operands[0]).dims
    cuts = [
        Cut(i, low, high, d)
        for i, ((low, high), d) in enumerate(zip(bounds, dims, strict=True))
        if (low, high) != (0, d)
    ]
    return cuts[0] if len(cuts) == 1 and cuts[0].low < cuts[0].high else None


def cut_to(rw: Rewriter, x: ir.Value, bounds: Sequence[tuple[int, int]]) -> ir.Value:
    """Cut `x` to bounds; return `x` itself where they are all of it."""
    cut = [
        (i, low, high)
        for i, ((low, high), d) in enumerate(zip(bounds, rw.dims(x), strict=True))
        if (low, high) != (0, d)
    ]
    if not cut:
        return x
    axes, starts, ends = zip(*cut, strict=True)
    return rw.op("slice", x, axes=axes, starts=starts, ends=ends)


def cut_along(rw: Rewriter, x: ir.Value, axis: int, low: int, high: int) -> ir.Value:
    """Cut elements low to high out of `x` along `axis`; return `x` itself where they are all."""
    if (low, high) == (0, rw.dims(x)[axis]):
        return x
    return rw.op("slice", x, axes=[axis], starts=[low], ends=[high])


# ---- slices of slices and of concatenations -----------------------------------------------------


@pattern(Slice, benefit=2)
def find_nested_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(slice(x)) -> slice(x)"""
    inner = rw.defining(op.operands[0], Slice)
    if inner is None:
        return no_match("input is not a slice")
    outer, first = bounds_of(op), bounds_of(inner)
    if outer is None or first is None:
        return no_match("bounds are known at run time only")
    bounds = [(f[0] + o[0], f[0] + o[1]) for f, o in zip(first, outer, strict=True)]
    for (low, high), d in zip(bounds, rw.dims(op.operation.results[0]), strict=True):
        if is_named(d) and not is_named(high - low):
            return no_match("slice length {} replaces a dynamic extent", high - low)
    return cut_to(rw, inner.operands[0], bounds)


@pattern(Slice)
def find_concat_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(concat(..., x, ...)) -> slice(x), or the concat of the operands it takes from"""
    inner = rw.defining(op.operands[0], Concat)
    if inner is None:
        return no_match("input is not a concat")
    bounds = bounds_of(op)
    if bounds is None:
        return no_match("bounds are known at run time only")
    axis: int = inner.axis % len(bounds)
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
    return cut_to(rw, joined, bounds)


# ---- reshapes go before slices ------------------------------------------------------------------


@pattern(ReshapeOp)
def find_slice_shape_transforms(op: ReshapeOp, rw: Rewriter) -> Replacement:
    """reshape(slice(x)) -> slice(reshape(x)), the slice used once

    A reshape is free and can merge with ops before the slice. A transpose would move all of x, and
    a broadcast would have to be stored, so both stay after the slice.
    """
    inner = rw.defining(op.operands[0], Slice)
    if inner is None or len(op.operands) > 1:
        return no_match("input is not a slice, or dims are known at run time only")
    if not has_one_use(op.operands[0]):
        return no_match("the slice has other users")
    out = TensorType.of(op.results[0]).dims
    cut = cut_of(inner)
    if cut is None or DYN in out or 0 in out:
        return no_match("the slice is not of one axis of known extent")
    dims = TensorType.of(inner.operands[0]).dims
    found = _sliced_after(dims, cut, out)
    if found is None:
        return no_match("axis {} of the slice is not an axis of {}", cut.axis, op.results[0].type)
    axis, unit = found
    size = (cut.high - cut.low) * unit[0] // unit[1]
    if size != out[axis]:
        return no_match("slice length {} replaces a dynamic extent", size)
    whole = list(out)
    whole[axis] = cut.extent * unit[0] // unit[1]
    x = rw.op("reshape", inner.operands[0], dims=whole)
    return cut_along(rw, x, axis, cut.low * unit[0] // unit[1], cut.high * unit[0] // unit[1])


def _sliced_after(dims: Dims, cut: Cut, out: Dims) -> tuple[int, tuple[int, int]] | None:
    """Return the axis of `out` with the sliced axis, and (a, b): element i begins at i*a/b."""
    before, row = prod(dims[: cut.axis]), prod(dims[cut.axis + 1 :])
    lead = 1
    for axis, d in enumerate(out):
        if lead == before:
            inner = prod(out[axis + 1 :])
            # low and extent in whole steps of the new axis; high follows
            if row * cut.extent % inner == 0 and row * cut.low % inner == 0:
                return axis, (row, inner)
        lead *= d
    return None


# ---- transposes before slices -------------------------------------------------------------------


class _Part(NamedTuple):
    """A slice whose only use is a transpose: the transpose, and the slice's range."""

    transpose: ir.Operation
    cut: Cut
    permutation: tuple[int, ...]


def _live_users(value: ir.Value) -> Iterator[ir.Operation]:
    """Return the users of `value` that are not dead ops left by a pattern."""
    for use in value.uses:
        op = use.owner.operation
        if not len(op.results) or not all(has_no_use(r) for r in op.results):
            yield op


def _transposed_slices(x: ir.Value) -> list[_Part] | None:
    """Return the slices of `x` that are only transposed; None where `x` has too many users.

    Not those followed by a pointwise op, which forms one kernel with the transpose.
    """
    out: list[_Part] = []
    for n, op in enumerate(_live_users(x)):
        if n == _MANY:
            return None
        if not is_a(op, Slice) or not has_one_use(op.results[0]):
            continue
        user = next(iter(op.results[0].uses)).owner
        cut = cut_of(op.opview) if is_a(user, Transpose) else None
        if cut is not None and not any(is_a(u.owner, Pointwise) for u in user.results[0].uses):
            view = user.opview
            out.append(_Part(view, cut, tuple(view.permutation)))
    return out


def _tiles(cuts: Sequence[Cut]) -> bool:
    """Say whether slices of one axis have one length, and starts that are multiples of it."""
    length = cuts[0].high - cuts[0].low
    return cuts[0].extent % length == 0 and all(
        c.high - c.low == length and c.low % length == 0 for c in cuts
    )


@pattern(Transpose)
def find_slice_transpose(op: Transpose, rw: Rewriter) -> Replacement:
    """transpose(slice(x)), transpose(slice(x)), ... -> slice(y), slice(y), ... of y = transpose(x)

    One kernel instead of one per part; parts with another permutation are transposed from y. The
    parts must cover x, and be contiguous in y.
    """
    inner = defined_by(op.input, Slice)
    if inner is None:
        return no_match("input is not a slice")
    x = inner.operands[0]
    parts = _transposed_slices(x)
    if parts is None:
        return no_match("the sliced tensor has more than {} users", _MANY)
    own = next((p for p in parts if p.transpose.operation == op.operation), None)
    if own is None:
        return no_match(
            "the slice is not of one known axis, has other users, or a pointwise op follows"
        )
    parts = [p for p in parts if p.cut.axis == own.cut.axis]
    permutation, most = Counter(p.permutation for p in parts).most_common(1)[0]
    if most < 2:
        return no_match("no two slices have the same transpose")
    if sum(p.cut.high - p.cut.low for p in parts) < own.cut.extent:
        return no_match("the transposed slices do not cover the tensor")
    axis = permutation.index(own.cut.axis)
    dims = TensorType.of(x).dims
    if any(dims[p] != 1 for p in permutation[:axis]) and not _tiles([p.cut for p in parts]):
        return no_match("the slices would not be contiguous")
    rw.merge_location(*(p.transpose for p in parts if p is not own))
    with _after(x):
        y = rw.op("transpose", x, permutation=permutation)
    replacement = None
    for p in parts:
        with ir.InsertionPoint(p.transpose):
            z = cut_along(rw, y, axis, p.cut.low, p.cut.high)
            if p.permutation != permutation:
                z = rw.op("transpose", z, permutation=[permutation.index(q) for q in p.permutation])
        if p is own:
            replacement = z
        else:
            p.transpose.result.replace_all_uses_with(z)
    return replacement


def _after(x: ir.Value) -> ir.InsertionPoint:
    """Return the insertion point of an op on `x` before all its other users."""
    if isinstance(x.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(x.owner)
    return ir.InsertionPoint.after(x.owner)


@pattern(Slice)
def find_transpose_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(transpose(x)), ... -> slices along a new first axis of one transpose

    For equal pieces of a transposed tensor: their axis is split, and the axis of pieces transposed
    to the front, so that each piece is contiguous and not copied. Not for new rows of a cache,
    whose update reads them where they are.
    """
    view = defined_by(op.operands[0], Transpose)
    if view is None:
        return no_match("input is not a transpose")
    cut = cut_of(op)
    if cut is None:
        return no_match("it is not of one axis of known extent")
    dims = TensorType.of(view.result).dims
    if all(d == 1 for d in dims[: cut.axis]):
        return no_match("it is contiguous already")
    slices: list[tuple[ir.Operation, Cut]] = []
    for n, user in enumerate(_live_users(view.result)):
        part = cut_of(user.opview) if is_a(user, Slice) and n < _MANY else None
        if part is None or part.axis != cut.axis:
            return no_match("the transpose has users that are not slices of axis {}", cut.axis)
        slices.append((user, part))
    if len(slices) < 2 or not _tiles([c for _, c in slices]):
        return no_match("the slices are not several equal pieces")
    if any(is_a(r, ConcatPastPresent) for s, _ in slices for r in _live_users(s.results[0])):
        return no_match("an update of a cache reads a slice")
    length = cut.high - cut.low
    rw.merge_location(view)
    axis = view.permutation[cut.axis]
    whole = list(TensorType.of(view.input).dims)
    whole[axis : axis + 1] = [cut.extent // length, length]
    with ir.InsertionPoint(view):
        split = rw.op("reshape", view.input, dims=whole)
        permutation = [axis, *(p + (p >= axis) for p in view.permutation)]
        front = rw.op("transpose", split, permutation=permutation)
    replacement = None
    for user, part in slices:
        with ir.InsertionPoint(user):
            at = part.low // length
            piece = cut_along(rw, front, 0, at, at + 1)
            piece = rw.op("reshape", piece, dims=TensorType.of(user.results[0]).dims)
        if user == op.operation:
            replacement = piece
        else:
            user.results[0].replace_all_uses_with(piece)
    return replacement

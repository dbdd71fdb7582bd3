"""Patterns of simplify_algebra that move constants into weights, and broadcasts outwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, Pointwise, attributes_of, is_a, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.movement import Slice, cut_of
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Mul
from mgx_mlir.passes.analysis.constants import constant_map, copied, is_constant, is_own, splat
from mgx_mlir.passes.analysis.rounding import feeds_steps, is_rounded
from mgx_mlir.passes.analysis.view_chains import VIEWS, Atom, Map, build_map, trace, varying
from mgx_mlir.passes.simplify_algebra.units import sides
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
    users,
)


def _along(dims: tuple[int, ...], axis: int, atoms: Sequence[Atom]) -> Map:
    """Return the map to `dims` that follows `atoms` along one axis and repeats along the others."""
    axis %= len(dims)
    return tuple(
        tuple(atoms) if i == axis else (((d, 0),) if d != 1 else ()) for i, d in enumerate(dims)
    )


@pattern(Mul, benefit=2)
def find_mul_conv(op: Mul, rw: Rewriter) -> Replacement:
    """conv(x, w) * a -> conv(x, a * w), a constant per output channel"""
    for value, scale in sides(op):
        conv = defined_by(value, Convolution)
        if conv is None or not has_one_use(value) or not is_constant(conv.operands[1]):
            continue
        found = constant_map(scale)
        weights = conv.operands[1]
        dims = TensorType.of(weights).dims
        # the axis of the output channels: of the result, and of the weights
        channel, out = (len(dims) - 1, -1) if conv.channels_last else (1, 0)
        if found is None or DYN in dims or not varying(found[1]) <= {channel}:
            continue
        rw.merge_location(conv)
        factor = build_map(rw, found[0], _along(dims, out, found[1][channel]))
        scaled = rw.op("mul", weights, factor)
        return rw.op("convolution", conv.operands[0], scaled, **attributes_of(conv))
    return no_match("no operand is a convolution with constant weights, the other per channel")


@pattern(Mul, benefit=2)
def find_mul_dot(op: Mul, rw: Rewriter) -> Replacement:
    """dot(x, w) * a -> dot(x, w * a), w constant, a constant along the columns (or rows) of w"""
    for value, scale in sides(op):
        dot = defined_by(value, Dot)
        if dot is None or not has_one_use(value):
            continue
        found = constant_map(scale)
        if found is None:
            continue
        rank = len(found[1])
        for side, axis in ((1, rank - 1), (0, rank - 2)):
            weights = dot.operands[side]
            dims = TensorType.of(weights).dims
            if not is_constant(weights) or DYN in dims or not varying(found[1]) <= {axis}:
                continue
            rw.merge_location(dot)
            factor = build_map(rw, found[0], _along(dims, axis, found[1][axis]))
            operands = list(dot.operands)
            operands[side] = rw.op("mul", weights, factor)
            return rw.op("dot", *operands)
    return no_match("no operand is a dot with a constant side that the other operand scales")


@pattern(Mul)
def find_mul_add(op: Mul, rw: Rewriter) -> Replacement:
    """(x + b) * a -> x * a + b * a, a and b constant, x rounded, as a matmul is.

    An exact x may be close to -b, and then x * a + b * a loses digits that the sum keeps.
    """
    reason = no_match("no operand is a sum with a constant, the other constant")
    for value, a in sides(op):
        inner = defined_by(value, Add)
        if inner is None or not has_one_use(value) or not is_constant(a):
            continue
        for x, b in sides(inner):
            if is_constant(b) and not is_constant(x):
                if not is_rounded(x):
                    reason = no_match("x may be exact, and x + b cancel")
                    continue
                if feeds_steps(op.results[0]):
                    reason = no_match("a discontinuous op may read the last bit of the result")
                    continue
                rw.merge_location(inner)
                return rw.op("add", rw.op("mul", x, a), rw.op("mul", b, a))
    return reason


@pattern(Mul, benefit=2)
def find_mul_slice_conv(op: Mul, rw: Rewriter) -> Replacement:
    """slice(conv(x, w)) * a -> slice(conv(x, w * a)), a per channel, for the sliced channels.

    Other users of the convolution read other channels, which are multiplied by 1.
    """
    for value, scale in sides(op):
        part = defined_by(value, Slice)
        conv = None if part is None else defined_by(part.operands[0], Convolution)
        if part is None or conv is None or not has_one_use(value):
            continue
        found, cut = constant_map(scale), cut_of(part)
        weights = conv.operands[1]
        dims = TensorType.of(weights).dims
        channel, out = (len(dims) - 1, len(dims) - 1) if conv.channels_last else (1, 0)
        if found is None or cut is None or cut[0] != channel or not is_constant(weights):
            continue
        _, low, high = cut
        if DYN in dims or not varying(found[1]) <= {channel} or high == low:
            continue
        if not all(_is_beside(u, part, channel, low, high) for u in users(conv.results[0])):
            continue
        rw.merge_location(conv)
        with ir.InsertionPoint(conv):
            own = tuple(high - low if i == out else 1 for i in range(len(dims)))
            pieces = [build_map(rw, copied(found[0]), _along(own, out, found[1][channel]))]
            for at, n in ((0, low), (1, dims[out] - high)):
                if n:
                    ones = rw.literal(1, rw.dtype(weights))
                    width = [n if i == out else 1 for i in range(len(dims))]
                    pieces.insert(at * len(pieces), rw.multibroadcast(ones, width))
            factor = pieces[0] if len(pieces) == 1 else rw.op("concat", pieces, axis=out)
            scaled = rw.op("mul", copied(weights), rw.multibroadcast(factor, dims))
            new = rw.op("convolution", conv.operands[0], scaled, **attributes_of(conv))
        conv.results[0].replace_all_uses_with(new)
        return value
    return no_match("no operand is some channels of a convolution that nothing else takes")


def _is_beside(user: ir.Operation, part: Op, axis: int, low: int, high: int) -> bool:
    """Return whether `user` is the slice `part`, or a slice along `axis` outside of [low, high)."""
    if user.operation == part.operation:
        return True
    cut = cut_of(user.opview) if is_a(user, Slice) else None
    return cut is not None and cut[0] == axis and (cut[2] <= low or cut[1] >= high)


@pattern(Dot)
def find_dot_mul(op: Dot, rw: Rewriter) -> Replacement:
    """dot(z * a, w) -> dot(z, a * w), w and a constant, a along the columns of z (all-forms)

    Or a along the rows of z, on the right of w. Here the multiplication by a is fused into the
    kernel of z at no measurable cost, while new weights cost time and memory.
    """
    if not rw.options.all_forms:
        return no_match(
            "the multiplication is fused into the kernel before, weights are large (see all-forms)"
        )
    rank = TensorType.of(op.results[0]).rank
    for side, axis, along in ((0, rank - 1, rank - 2), (1, rank - 2, rank - 1)):
        weights = op.operands[1 - side]
        product = defined_by(op.operands[side], Mul)
        if product is None or not has_one_use(op.operands[side]) or not is_constant(weights):
            continue
        dims = TensorType.of(weights).dims
        for z, a in sides(product):
            found = constant_map(a)
            if found is None or is_constant(z) or DYN in dims or not varying(found[1]) <= {axis}:
                continue
            if not is_own(weights):
                return no_match("the weights have other uses, and would be stored twice")
            rw.merge_location(product)
            factor = build_map(rw, found[0], _along(dims, along, found[1][axis]))
            operands = [z, z]
            operands[1 - side] = rw.op("mul", weights, factor)
            return rw.op("dot", *operands)
    return no_match("no operand is a product with a constant along K, the other one constant")


@pattern(Dot)
def find_dot_add(op: Dot, rw: Rewriter) -> Replacement:
    """dot(x + b, w) -> dot(x, w) + dot(b, w), b and w constant, x rounded as for find_mul_add

    If b differs between rows, dot(b, w) is a whole matrix instead of a bias, so only with
    `all-forms`.
    """
    rank = TensorType.of(op.results[0]).rank
    reason = no_match("no operand is a sum with a constant, the other one constant")
    for side, along in ((0, rank - 1), (1, rank - 2)):
        weights = op.operands[1 - side]
        total = defined_by(op.operands[side], Add)
        if total is None or not has_one_use(op.operands[side]) or not is_constant(weights):
            continue
        for x, b in sides(total):
            found = constant_map(b)
            if found is None or is_constant(x) or not TensorType.of(op.results[0]).is_static:
                continue
            if not is_rounded(x):
                reason = no_match("x may be exact, and x + b cancel")
                continue
            if not varying(found[1]) <= {along} and not rw.options.all_forms:
                reason = no_match("the constant differs along other axes (all-forms takes it)")
                continue
            rw.merge_location(total)
            left = [x, x]
            left[1 - side] = weights
            bias = _dot_of_constants(rw, found, weights, side)
            bias = rw.multibroadcast(bias, TensorType.of(op.results[0]).dims)
            return rw.op("add", rw.op("dot", *left), bias)
    return reason


def _dot_of_constants(
    rw: Rewriter, b: tuple[ir.Value, Map], weights: ir.Value, side: int
) -> ir.Value:
    """Build dot(b, weights) (the other way round for side 1), of extent 1 where it would repeat."""
    found = constant_map(weights)
    assert found is not None
    rank = len(b[1])
    inner = {0: (rank - 1, rank - 2), 1: (rank - 2, rank - 1)}[side]
    kept = varying(b[1]) | varying(found[1])
    small: list[ir.Value] = []
    for i, (source, m) in enumerate((b, found)):
        # batch axes along which one of them varies, and the reduced axis, stay in both
        keep = {k for k in kept if k < rank - 2} | varying(m) | {inner[i]}
        small.append(build_map(rw, source, tuple(t if k in keep else () for k, t in enumerate(m))))
    return rw.op("dot", *(small if side == 0 else reversed(small)))


@pattern(Convolution)
def find_conv_add(op: Convolution, rw: Rewriter) -> Replacement:
    """conv(x + a, w) -> conv(x, w) + conv(a, w), a and w constant, x rounded as for find_mul_add

    Without padding and with a per channel, conv(a, w) is a bias. Else it is a whole image, while
    the sum before is fused, so only with `all-forms`.
    """
    weights = op.operands[1]
    total = defined_by(op.operands[0], Add)
    if total is None or not has_one_use(op.operands[0]) or not is_constant(weights):
        return no_match("input is not a sum, or the weights are not constant")
    out = TensorType.of(op.results[0])
    if not out.is_static or not TensorType.of(op.operands[0]).is_static:
        return no_match("dynamic dims")
    reason = no_match("the input is not a sum with a constant")
    for x, a in sides(total):
        found = constant_map(a)
        if found is None or is_constant(x):
            continue
        if not is_rounded(x):
            reason = no_match("x may be exact, and x + a cancel")
            continue
        attributes = attributes_of(op)
        reach = window_reach(op)
        channel = out.rank - 1 if op.channels_last else 1
        if varying(found[1]) <= {channel} and unpadded(op):
            # one window of it
            first = 1 if op.channels_last else 2
            m: list[Any] = [t if i == channel else () for i, t in enumerate(found[1])]
            for i, n in enumerate(reach):
                m[first + i] = ((n, 0),) if n != 1 else ()
            image = build_map(rw, found[0], tuple(m))
        elif rw.options.all_forms:
            # a batch of equal images is one
            keep = 0 in varying(found[1])
            image = build_map(rw, found[0], (found[1][0] if keep else (), *found[1][1:]))
        else:
            reason = no_match(
                "the constant is not a bias after the convolution (all-forms takes it)"
            )
            continue
        rw.merge_location(total)
        bias = rw.multibroadcast(rw.op("convolution", image, weights, **attributes), out.dims)
        return rw.op("add", rw.op("convolution", x, weights, **attributes), bias)
    return reason


def window_reach(conv: Op) -> list[int]:
    """Return how far one window of a convolution reaches along each spatial axis."""
    dims = TensorType.of(conv.operands[1]).dims
    kernel = dims[:-2] if conv.channels_last else dims[2:]
    return [d * (k - 1) + 1 for d, k in zip(conv.dilation, kernel, strict=True)]


def unpadded(conv: Op) -> bool:
    """Say whether no window of a convolution reads outside of its input."""
    if conv.padding_mode != "default_":
        return all(n == 1 for n in window_reach(conv))
    return not any(conv.padding)


@pattern(Slice)
def find_dot_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(dot(a, b)) -> dot(slice(a), slice(b)) where nothing else uses the dot"""
    dot = defined_by(op.operands[0], Dot)
    if dot is None or not has_one_use(op.operands[0]):
        return no_match("input is not a dot, or the rest of it is used too")
    rank = TensorType.of(op.results[0]).rank
    if len(op.operands) > 1 or not op.axes:
        return no_match("bounds are known at run time only")
    rw.merge_location(dot)
    operands: list[ir.Value] = []
    for side, own in ((0, rank - 2), (1, rank - 1)):
        cut = [
            (a % rank, s, e)
            for a, s, e in zip(op.axes, op.starts, op.ends, strict=True)
            if a % rank < rank - 2 or a % rank == own
        ]
        x = dot.operands[side]
        if cut:
            axes, starts, ends = zip(*cut, strict=True)
            x = rw.op("slice", x, axes=axes, starts=starts, ends=ends)
        operands.append(x)
    return rw.op("dot", *operands)


@pattern(Pointwise, benefit=2)
def find_inner_broadcast(op: Pointwise, rw: Rewriter) -> Replacement:
    """f(broadcast(x), broadcast(y)) -> broadcast(f(x, y))"""
    if len(op.results) != 1 or not len(op.operands):
        return no_match("it has {} results", len(op.results))
    views = [defined_by(v, *VIEWS) is not None for v in op.operands]
    if not any(views):
        return no_match("no operand is a broadcast")
    dims = TensorType.of(op.results[0]).dims
    if DYN in dims or 0 in dims:
        return no_match("{} has unknown or empty extents", op.results[0].type)
    if any(not is_view and splat(v) is None for v, is_view in zip(op.operands, views, strict=True)):
        return no_match("an operand varies along every axis")
    sources: list[tuple[ir.Value, Map] | None] = []
    kept: frozenset[int] = frozenset()
    for v in op.operands:
        if TensorType.of(v).dims != dims:
            return no_match("an operand has other dims")
        number = splat(v)
        found = None if number is not None else trace(v)
        sources.append(None if found is None else (found[0], found[1]))
        if found is not None:
            kept |= varying(found[1])
    small = tuple(d if i in kept else 1 for i, d in enumerate(dims))
    if small == dims:
        return no_match("the operands vary along every axis together")
    operands: list[ir.Value] = []
    for v, source in zip(op.operands, sources, strict=True):
        if source is None:
            operands.append(rw.multibroadcast(rw.literal(splat(v), rw.dtype(v)), small))
        else:
            m = tuple(atoms if i in kept else () for i, atoms in enumerate(source[1]))
            operands.append(build_map(rw, source[0], m))
    rw.merge_location(*(v.owner for v, is_view in zip(op.operands, views, strict=True) if is_view))
    name = mnemonic(op)
    return rw.multibroadcast(rw.op(name, *operands, **attributes_of(op)), dims)

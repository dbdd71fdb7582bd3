"""Patterns of simplify_algebra that move constants into weights, and broadcasts outwards."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, attributes_of
from mgx_mlir.core.pattern import Rewriter, defined_by, has_one_use, no_match, pattern
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.constants import constant_map, is_constant, splat
from mgx_mlir.passes.shape_chain import VIEWS, Map, build_map, trace, varying


def _sides(op: Any) -> tuple[tuple[ir.Value, ir.Value], ...]:
    """Both ways to see a commutative op as (operand, other operand)."""
    a, b = op.operands
    return (a, b), (b, a)


def _along(dims: tuple[int, ...], axis: int, atoms: Any) -> Map:
    """The map to `dims` that follows `atoms` along one axis and repeats along the others."""
    axis %= len(dims)
    return tuple(
        tuple(atoms) if i == axis else (((d, 0),) if d != 1 else ()) for i, d in enumerate(dims)
    )


@pattern("mul", benefit=2)
def find_mul_conv(op: Any, rw: Rewriter) -> Any:
    """conv(x, w) * a -> conv(x, a * w), a constant per output channel"""
    for value, scale in _sides(op):
        conv = defined_by(value, "convolution")
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


@pattern("mul", benefit=2)
def find_mul_dot(op: Any, rw: Rewriter) -> Any:
    """dot(x, w) * a -> dot(x, w * a), w constant, a constant along the columns (or rows) of w"""
    for value, scale in _sides(op):
        dot = defined_by(value, "dot")
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


@pattern("mul")
def find_mul_add(op: Any, rw: Rewriter) -> Any:
    """(x + b) * a -> x * a + b * a, a and b constant"""
    for value, a in _sides(op):
        inner = defined_by(value, "add")
        if inner is None or not has_one_use(value) or not is_constant(a):
            continue
        for x, b in _sides(inner):
            if is_constant(b) and not is_constant(x):
                rw.merge_location(inner)
                return rw.op("add", rw.op("mul", x, a), rw.op("mul", b, a))
    return no_match("no operand is a sum with a constant, the other constant")


@pattern(Pointwise, benefit=2)
def find_inner_broadcast(op: Any, rw: Rewriter) -> Any:
    """f(broadcast(x), broadcast(y)) -> broadcast(f(x, y))"""
    if len(op.results) != 1 or not len(op.operands):
        return no_match("it has {} results", len(op.results))
    views = [defined_by(v, *VIEWS) is not None for v in op.operands]
    if not any(views):
        return no_match("no operand is a broadcast")
    dims = TensorType.of(op.results[0]).dims
    if DYN in dims or 0 in dims:
        return no_match("{} has unknown or empty extents", op.results[0].type)
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
    operands = []
    for v, source in zip(op.operands, sources, strict=True):
        if source is None:
            operands.append(rw.multibroadcast(rw.literal(splat(v), rw.dtype(v)), small))
        else:
            m = tuple(atoms if i in kept else () for i, atoms in enumerate(source[1]))
            operands.append(build_map(rw, source[0], m))
    rw.merge_location(*(v.owner for v, is_view in zip(op.operands, views, strict=True) if is_view))
    name = op.operation.name.removeprefix("migraphx.")
    return rw.multibroadcast(rw.op(name, *operands, **attributes_of(op)), dims)

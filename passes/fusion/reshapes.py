"""Moving of reshapes out of kernels: the first step of fuse_pointwise and fuse_reduce."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.quant import QuantDot
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import ReshapeOp
from mgx_mlir.passes.analysis.access_maps import Unreadable, grouped
from mgx_mlir.passes.analysis.constants import is_constant, splat
from mgx_mlir.passes.analysis.kernel_ops import in_kernel
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.passes.simplify_reshapes import find_nested_shape_transforms, find_nop_reshapes
from mgx_mlir.rewrite.pattern import (
    Pattern,
    PatternSet,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
    users,
)


def _reshaped(v: ir.Value) -> ReshapeOp | None:
    """Return the reshape that makes `v` of a value that nothing else reads, static dims only."""
    view = _static_reshape(v)
    if view is None or not has_one_use(v):
        return None
    return view if has_one_use(view.operation.operands[0]) else None


def _static_reshape(v: ir.Value) -> ReshapeOp | None:
    view = defined_by(v, ReshapeOp)
    if view is None or len(view.operation.operands) != 1:
        return None
    source = view.operation.operands[0]
    static = TensorType.of(v).is_static and TensorType.of(source).is_static
    return view if static else None


def _movable(v: ir.Value) -> ReshapeOp | None:
    """Return the reshape that makes `v`, whose readers can all be ahead of it: x * sigmoid(x).

    They are pointwise, and read only each other, the reshape, and values that can have its source's
    dims for free.
    """
    view = _static_reshape(v)
    if view is None or not is_a(view.operation.operands[0].owner, (Pointwise, QuantDot)):
        return None
    source = view.operation.operands[0]
    dims, readers = TensorType.of(source).dims, users(v)
    if any(u != view.operation and not is_a(u, Pointwise) for u in users(source)):
        return None
    for u in readers:
        if not is_a(u, Pointwise) or len(u.results) != 1:
            return None
        if not all(x == v or x.owner in readers or _is_free(x, dims) for x in u.operands):
            return None
    return view


def _is_free(x: ir.Value, dims: tuple[int, ...]) -> bool:
    """Return whether a value can have other dims for free: a splat, or a reshape from them."""
    if splat(x) is not None or is_constant(x) or isinstance(x.owner, ir.Block):
        return True
    view = _static_reshape(x)
    return view is not None and TensorType.of(view.operation.operands[0]).dims == dims


@pattern(Pointwise)
def pointwise_reshape(op: Pointwise, rw: Rewriter) -> Replacement:
    """f(reshape(g(x)), y) -> reshape(f(g(x), reshape(y))), f and g pointwise, y not a kernel's
    result

    g may also be an 8-bit matmul, whose requantisation then joins its kernel.
    """
    if in_kernel(op.operation):
        return no_match("it is in a kernel")
    operands = list(op.operation.operands)
    movable = ((i, view) for i, v in enumerate(operands) if (view := _movable(v)) is not None)
    at, view = next(movable, (0, None))
    if view is None or len(op.operation.results) != 1:
        return no_match(
            "no operand is a reshape of a pointwise op's result, whose readers can move"
        )
    inner = TensorType.of(view.operation.operands[0]).dims
    out = TensorType.of(op.operation.results[0])
    if 0 in out.dims:
        return no_match("{} has no elements", out)
    moved: list[ir.Value] = []
    for i, v in enumerate(operands):
        same = v == operands[at]
        found = view.operation.operands[0] if same else _at_dims(rw, v, inner)
        if found is None:
            return no_match("operand {} comes from another op, whose kernel would be split", i)
        moved.append(found)
    rw.merge_location(view)
    return rw.op("reshape", rebuild(op, moved, out.with_dims(inner)), dims=list(out.dims))


def _at_dims(rw: Rewriter, v: ir.Value, dims: tuple[int, ...]) -> ir.Value | None:
    """Return an operand at other dims if that is free."""
    if not _is_free(v, dims):
        return None
    number = splat(v)
    if number is not None:
        return rw.multibroadcast(rw.literal(number, rw.dtype(v)), dims)
    view = _static_reshape(v)
    if view is not None and TensorType.of(view.operation.operands[0]).dims == dims:
        return view.operation.operands[0]
    return rw.op("reshape", v, dims=list(dims))


@pattern(NumberReduction)
def reduce_reshape(op: NumberReduction, rw: Rewriter) -> Replacement:
    """reduce(reshape(f(x)), axes) -> reshape(reduce(f(x), other axes)), f pointwise"""
    if in_kernel(op.operation) or len(op.operation.operands) != 1:
        return no_match("it is in a kernel, or its axes are known at run time only")
    view = _reshaped(op.operation.operands[0])
    if view is None or not is_a(view.operation.operands[0].owner, Pointwise):
        return no_match("the operand is no reshape of a pointwise op's result, read by it alone")
    source, t = view.operation.operands[0], TensorType.of(op.operation.operands[0])
    if 0 in t.dims:
        return no_match("{} has no elements", t)
    reduced = {a % t.rank for a in op.axes} or set(range(t.rank))
    axes: list[int] = []
    try:
        groups = grouped(t.dims, TensorType.of(source).dims)
    except Unreadable as e:
        return no_match("{}", str(e))
    for a, b in groups:
        full = {i in reduced for i in a if t.dims[i] != 1}
        if len(full) > 1:
            return no_match("it reduces a part of the dims that the reshape joins or splits")
        if full == {True}:
            axes += [j for j in b if TensorType.of(source).dims[j] != 1]
    if not axes:
        return no_match("it reduces extents of 1 only")
    rw.merge_location(view)
    made = rw.op(op.mnemonic, source, axes=axes)
    return rw.op("reshape", made, dims=list(TensorType.of(op.operation.results[0]).dims))


def move_reshapes(module: ir.Operation, patterns: Sequence[Pattern], options: object) -> bool:
    """Apply patterns of this file, and merge adjacent reshapes."""
    moved = PatternSet(patterns).apply(module, options)
    joined = PatternSet((find_nested_shape_transforms, find_nop_reshapes)).apply(module, options)
    return moved + joined > 0

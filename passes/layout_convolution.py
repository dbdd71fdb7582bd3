"""layout_convolution: convolutions and the ops between them in channels-last order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Op, Pointwise, attributes_of, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast, Scalar
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.movement import Concat, Pad, Slice
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, QuantConvolution, QuantizeLinear
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.dialects.migraphx.views import Reshape, Transpose, Unsqueeze
from mgx_mlir.passes.analysis.channels_last import from_last, to_first, to_last
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.passes.analysis.repeated import repeated_dims
from mgx_mlir.passes.group_layout import find_group_norm_layout, find_group_pointwise_layout
from mgx_mlir.passes.simplify_reshapes import find_transpose
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern


@pattern(Convolution)
def find_convolution_layout(op: Convolution, rw: Rewriter) -> Replacement:
    """convolution(x, w) -> transpose(convolution{channels_last}(transpose(x), transpose(w)))"""
    rank = TensorType.of(op.out).rank
    if op.channels_last:
        return no_match("already channels-last")
    if rank not in (3, 4):
        return no_match("rank {} is not 3 or 4", rank)
    x = rw.op("transpose", op.input, permutation=to_last(rank))
    w = rw.op("transpose", op.weights, permutation=[*range(2, rank), 1, 0])
    y = rw.op(
        "convolution",
        x,
        w,
        padding=op.padding,
        stride=op.stride,
        dilation=op.dilation,
        group=op.group,
        padding_mode=op.padding_mode,
        channels_last=True,
    )
    return rw.op("transpose", y, permutation=to_first(rank))


@pattern(QuantConvolution)
def find_quant_convolution_layout(op: QuantConvolution, rw: Rewriter) -> Replacement:
    """quant_convolution(x, w) -> transpose(quant_convolution{channels_last}(..)), as of floats"""
    rank = TensorType.of(op.out).rank
    if op.channels_last:
        return no_match("already channels-last")
    if rank not in (3, 4):
        return no_match("rank {} is not 3 or 4", rank)
    if len(op.operation.operands) > 2:
        return no_match("it scales its operands")
    x = rw.op("transpose", op.input, permutation=to_last(rank))
    w = rw.op("transpose", op.weights, permutation=[*range(2, rank), 1, 0])
    y = rw.op("quant_convolution", x, w, **{**attributes_of(op), "channels_last": True})
    return rw.op("transpose", y, permutation=to_first(rank))


@pattern(Pooling)
def find_pooling_layout(op: Pooling, rw: Rewriter) -> Replacement:
    """pooling(transpose(x)) -> transpose(pooling{channels_last}(x))"""
    if op.channels_last:
        return no_match("already channels-last")
    x = from_last(rw, op.input)
    if x is None:
        return no_match("input is not a transposed channels-last tensor")
    attributes = {n: getattr(op, n) for n in (
        "mode", "padding", "padding_mode", "stride", "lengths", "dilations", "ceil_mode",
        "count_include_pad", "lp_order", "dyn_global")}  # fmt: skip
    y = rw.op("pooling", x, **attributes, channels_last=True)
    return rw.op("transpose", y, permutation=to_first(TensorType.of(op.out).rank))


@pattern(Pointwise, QuantizeLinear, DequantizeLinear)
def find_pointwise_layout(op: Op, rw: Rewriter) -> Replacement:
    """pointwise(transpose(x), transpose(y)) -> transpose(pointwise(x, y))"""
    out = TensorType.of(op.operation.results[0])
    operands = list(op.operation.operands)
    inner = [from_last(rw, v) for v in operands]
    if not any(v is not None for v in inner):
        return no_match("no operand is a transposed channels-last tensor")
    perm = to_last(out.rank)
    new: list[ir.Value] = []
    for v, below in zip(operands, inner, strict=True):
        if below is None:
            if not _is_cheap(v):
                return no_match("another operand would have to be transposed")
            below = rw.op("transpose", v, permutation=perm)
        new.append(below)
    y = rebuild(op, new, out.with_dims(out.dims[p] for p in perm))
    return rw.op("transpose", y, permutation=to_first(out.rank))


def _is_cheap(v: ir.Value) -> bool:
    """Return whether transposing a value is cheap: a constant or a broadcast."""
    return is_a(v.owner, (Literal, BroadcastOp))


@pattern(Transpose)
def find_transpose_broadcast(op: Transpose, rw: Rewriter) -> Replacement:
    """transpose(broadcast(x)) -> broadcast(transpose(x))"""
    view = rw.defining(op.input, BroadcastOp)
    if view is None:
        return no_match("input is not a broadcast")
    out = TensorType.of(op.out)
    operands = list(view.operation.operands)
    if not out.is_static or len(operands) != 1:
        return no_match("the broadcast has dynamic dims")
    x = operands[0]
    t = TensorType.of(x)
    if is_a(view, Scalar) or t.elements == 1:
        flat = rw.op("reshape", x, dims=[1]) if t.dims != (1,) else x
        return rw.op("multibroadcast", [flat], out_lens=list(out.dims))
    found = repeated_dims(op.input)
    if found is None:
        return no_match("an extent of 0, which a reshape reads as the input's")
    perm, full = list(op.permutation), found[1]
    if is_a(view, Broadcast) and t.rank == 1:
        return rw.op("broadcast", x, axis=perm.index(view.axis), out_lens=list(out.dims))
    if full != t.dims:
        x = rw.op("reshape", x, dims=list(full))
    moved = rw.op("transpose", x, permutation=perm)
    return rw.op("multibroadcast", [moved], out_lens=list(out.dims))


@pattern(Transpose)
def find_transpose_unit(op: Transpose, rw: Rewriter) -> Replacement:
    """transpose that only moves extents of 1 -> reshape"""
    t = TensorType.of(op.input)
    moved = [p for p in op.permutation if t.dims[p] != 1]
    if not t.is_static or moved != sorted(moved):
        return no_match("it moves data")
    if 0 in t.dims:
        return no_match("an extent of 0, which a reshape reads as the input's")
    return rw.op("reshape", op.input, dims=list(TensorType.of(op.out).dims))


def _only_image(op: Op, rw: Rewriter) -> ir.Value | None:
    """Return the channels-last source of an op's operand, if that is a transpose of it."""
    operands = list(op.operation.operands)
    return from_last(rw, operands[0]) if len(operands) == 1 else None


def _both_ends(numbers: Sequence[float], order: Sequence[int]) -> list[float]:
    """Return padding (starts, then ends of axes) for permuted axes."""
    return [numbers[p + side] for side in (0, len(order)) for p in order]


@pattern(NumberReduction)
def find_reduce_layout(op: NumberReduction, rw: Rewriter) -> Replacement:
    """reduce(transpose(x), axes) -> transpose(reduce(x, moved axes))"""
    x = _only_image(op, rw)
    if x is None:
        return no_match("input is not a transposed channels-last tensor")
    rank = TensorType.of(x).rank
    perm = to_first(rank)
    axes: tuple[int, ...] = op.axes
    y = rw.op(op.mnemonic, x, axes=sorted(perm[a % rank] for a in axes))
    return rw.op("transpose", y, permutation=perm)


@pattern(Concat)
def find_concat_layout(op: Concat, rw: Rewriter) -> Replacement:
    """concat(transpose(x), transpose(y)) -> transpose(concat(x, y))"""
    inner = [from_last(rw, v) for v in op.inputs]
    if not inner or any(v is None for v in inner):
        return no_match("not every input is a transposed channels-last tensor")
    rank = TensorType.of(op.out).rank
    perm = to_first(rank)
    y = rw.op("concat", inner, axis=perm[op.axis % rank])
    return rw.op("transpose", y, permutation=perm)


@pattern(Slice)
def find_slice_layout(op: Slice, rw: Rewriter) -> Replacement:
    """slice(transpose(x)) -> transpose(slice(x))"""
    x = _only_image(op, rw)
    if x is None:
        return no_match("input is not a transposed channels-last tensor, or its bounds are dynamic")
    rank = TensorType.of(x).rank
    perm = to_first(rank)
    axes: list[int] = [perm[a % rank] for a in op.axes]
    y = rw.op("slice", x, axes=axes, starts=list(op.starts), ends=list(op.ends))
    return rw.op("transpose", y, permutation=perm)


@pattern(Resize)
def find_resize_layout(op: Resize, rw: Rewriter) -> Replacement:
    """resize(transpose(x)) -> transpose(resize(x))"""
    x = from_last(rw, op.input)
    if x is None or op.target is not None:
        return no_match("input is not a transposed channels-last tensor, or its sizes are dynamic")
    rank = TensorType.of(x).rank
    last = to_last(rank)
    moved = {n: [v[p] for p in last] for n in ("scales", "sizes") if (v := list(getattr(op, n)))}
    roi = list(op.roi)
    if roi:
        moved["roi"] = _both_ends(roi, last)
    names = (
        "mode", "nearest_mode", "coordinate_transformation_mode", "cubic_coeff_a",
        "exclude_outside", "antialias", "extrapolation_value",
    )  # fmt: skip
    y = rw.op("resize", x, **moved, **{n: getattr(op, n) for n in names})
    return rw.op("transpose", y, permutation=to_first(rank))


@pattern(Reshape)
def find_repeat_layout(op: Reshape, rw: Rewriter) -> Replacement:
    """reshape(multibroadcast(reshape(transpose(x)))) -> transpose(.. of x), repeated elements

    This is the form of a nearest resize by an integer factor.
    """
    wide = rw.defining(op.input, Multibroadcast)
    if wide is None or len(wide.operation.operands) != 1:
        return no_match("input is not a broadcast to known extents")
    split = rw.defining(wide.operation.operands[0], Reshape, Unsqueeze)
    x = None if split is None else from_last(rw, split.operation.operands[0])
    if split is None or x is None:
        return no_match("the broadcast's source is not a split channels-last tensor")
    own, out = TensorType.of(split.operation.operands[0]), TensorType.of(op.out)
    if not own.is_static or not out.is_static or own.rank != out.rank or 0 in own.dims:
        return no_match("{} to {} repeats no elements, or unknown ones", own, out)
    times = [n // d for n, d in zip(out.dims, own.dims, strict=True)]
    axes = [[d, k] if k > 1 else [d] for d, k in zip(own.dims, times, strict=True)]
    if TensorType.of(wide.out).dims != tuple(n for axis in axes for n in axis):
        return no_match("elements of an axis are repeated unequally")
    axes = [axes[p] for p in to_last(own.rank)]
    ones = [n for axis in axes for n in (axis[0], *(1 for _ in axis[1:]))]
    y = rw.op("reshape", x, dims=ones)
    y = rw.op("multibroadcast", [y], out_lens=[n for axis in axes for n in axis])
    y = rw.op("reshape", y, dims=[prod(axis) for axis in axes])
    return rw.op("transpose", y, permutation=to_first(own.rank))


@pattern(Pad)
def find_pad_layout(op: Pad, rw: Rewriter) -> Replacement:
    """pad(transpose(x)) -> transpose(pad(x))"""
    x = _only_image(op, rw)
    if x is None:
        return no_match("input is not a transposed channels-last tensor")
    rank = TensorType.of(x).rank
    pads = _both_ends(op.pads, to_last(rank))
    y = rw.op("pad", x, mode=op.mode, pads=pads, value=op.value)
    return rw.op("transpose", y, permutation=to_first(rank))


@dataclass(frozen=True)
class LayoutConvolution(PatternPass):
    """Convolutions and poolings in channels-last order; transposes move to the graph's edges."""

    name: ClassVar[str] = "layout_convolution"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_convolution_layout,
        find_quant_convolution_layout,
        find_pooling_layout,
        find_pointwise_layout,
        find_transpose,
        find_transpose_unit,
        find_transpose_broadcast,
        find_reduce_layout,
        find_concat_layout,
        find_pad_layout,
        find_slice_layout,
        find_resize_layout,
        find_repeat_layout,
        find_group_norm_layout,
        find_group_pointwise_layout,
    )
    groups: bool = option(False, "norms over groups of channels stay in channels-last order")
    max_iterations: int = option(-1, "sweeps over the module; -1: until nothing changes")

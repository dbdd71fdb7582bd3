"""Quantisation: QuantizeLinear, DequantizeLinear and the integer matmuls with scales."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import FLOAT, INT32, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.core.subbyte_types import BY_ONNX, Narrow
from mgx_mlir.frontends.extents import extents, plus, quotient
from mgx_mlir.frontends.extents import scalar as scalar_extent
from mgx_mlir.frontends.helpers import (
    axis_in,
    axis_range,
    channel_dims,
    compare,
    convert,
    extent,
    number,
    require,
    reshape,
    same_extent,
    single,
    slice_,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.casts import cast_to, to_narrow
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.conv import ConvAttributes, conv_integer
from mgx_mlir.frontends.onnx.ops.linear import matmul_integer
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def spread(b: Builder, v: Value, x: Value, axis: int, block_size: int) -> Value:
    """Return a scale or zero point with the dims of `x`: per tensor, along `axis`, per block of
    `axis`, or one per element.
    """
    dims, rank = b.dims(v), len(b.dims(x))
    if not block_size and rank > 1 and len(dims) == rank:
        axis, block_size = _implied_blocks(dims, b.dims(x), axis)
    if block_size:
        return _of_blocks(b, v, x, axis_in(axis, rank), block_size)
    if len(dims) == 1 and rank > 0:
        if dims[0] == 1:  # any axis gives the same
            v = reshape(b, v, [1] * rank)
        else:
            count = -1 if dims[0] == DYN else dims[0]
            v = reshape(b, v, channel_dims(rank, axis_in(axis, rank), count))
    elif dims and all(d == 1 for d in dims):
        v = reshape(b, v, [1] * rank)
    elif dims and (dims != b.dims(x) or DYN in dims):
        raise ModelError(f"scale expected a scalar or a vector, got dims {show_dims(dims)}")
    return v


def _of_blocks(b: Builder, v: Value, x: Value, axis: int, size: int) -> Value:
    """Return a scale or zero point per block, repeated to the dims of `x`."""
    dims, full = b.dims(v), b.dims(x)
    if len(dims) != len(full) or size < 1:
        raise ModelError(f"scale dims {show_dims(dims)} do not fit blocks of {size}")
    for i in range(len(full)):
        if i != axis:
            v = same_extent(b, v, i, x, i, f"a scale of the input's dim {i}")
    have, whole = extents(b, v)[axis], extents(b, x)[axis]
    blocks = quotient(b, plus(b, whole, size - 1), size)
    if not isinstance(have, int) or not isinstance(blocks, int):
        fits = compare(b, "equal", scalar_extent(b, have), scalar_extent(b, blocks))
        v = require(b, v, fits, f"a scale for each block of {size}")
    elif have != blocks:
        raise ModelError(f"scale dims {show_dims(dims)} do not fit blocks of {size}")
    if DYN in (*dims, *full):
        return b.gather(v, b.div(axis_range(b, x, axis), size), axis=axis)
    split = [*dims[: axis + 1], size, *dims[axis + 1 :]]
    repeated = b.multibroadcast(unsqueeze(b, v, [axis + 1]), split)
    out = reshape(b, repeated, [*dims[:axis], dims[axis] * size, *dims[axis + 1 :]])
    return slice_(b, out, [axis], [0], [full[axis]])


def _implied_blocks(dims: tuple[int, ...], full: tuple[int, ...], axis: int) -> tuple[int, int]:
    """Return the axis and block size of a scale with the data's rank, if `block_size` is absent.

    The size is 0 if the dims do not determine it.
    """
    other = [i for i, (d, n) in enumerate(zip(dims, full, strict=True)) if d != n]
    if DYN in (*dims, *full) or len(other) != 1 or not dims[other[0]]:
        return axis, 0
    size, rest = divmod(full[other[0]], dims[other[0]])
    return (axis, 0) if rest or dims[other[0]] == 1 else (other[0], size)


def quantized(
    b: Builder,
    x: Value,
    scale: Value,
    zero: Value | None,
    target: DType | Narrow,
    *,
    saturate: bool = True,
    precision: DType | None = None,
) -> Value:
    """saturate(round(x / scale) + zero), computed in f32 (f64 stays).

    `precision` rounds the quotient to a type; without `saturate` 8-bit floats become inf or NaN.
    """
    kind = b.dtype(x) if b.dtype(x) is dtypes.DOUBLE else FLOAT
    by = kind if precision is None else precision
    ratio = convert(b, b.div(convert(b, x, by), convert(b, scale, by)), kind)
    if not target.is_integer:
        if zero is not None:
            ratio = b.add(ratio, convert(b, zero, kind))
        if isinstance(target, Narrow):
            return to_narrow(b, ratio, target)
        return cast_to(b, ratio, target, saturate)
    rounded = b.nearbyint(ratio)
    if zero is not None:
        rounded = b.add(rounded, convert(b, zero, kind))
    if isinstance(target, Narrow):
        low, high, target = target.low, target.high, target.held
    else:
        low, high = target.lowest(), target.highest()
    return b.convert(
        b.clip(rounded, number(b, low, rounded), number(b, high, rounded)), target_type=target
    )


def _target(b: Builder, node: Node, zero: Value | None, output_dtype: int) -> DType | Narrow:
    """Return the quantised type: the zero point's, or the stated one, or uint8."""
    if zero is not None:
        return BY_ONNX.get(node.kind(zero)) or b.dtype(zero)
    if output_dtype in BY_ONNX:
        return BY_ONNX[output_dtype]
    return cast_number(output_dtype) if output_dtype else dtypes.UINT8


def _as_scale(b: Builder, zero: Value, scale: Value) -> Value:
    """Return a zero point per scale; a single one may have another rank."""
    own, dims = b.dims(zero), b.dims(scale)
    if len(own) == len(dims):
        for i in range(len(own)):
            zero = same_extent(b, zero, i, scale, i, "a zero point for each scale")
        return zero
    if any(d not in (1, DYN) for d in (*own, *dims)):
        raise ModelError(
            f"a zero point of dims {show_dims(own)} for a scale of dims {show_dims(dims)}"
        )
    for i, d in enumerate(dims):
        if d == DYN:
            one = compare(b, "equal", extent(b, scale, i), 1)
            zero = require(b, zero, one, "one scale for one zero point")
    return single(b, zero, "zero point") if DYN in own else zero


def _like(b: Builder, v: Value, x: Value) -> Value:
    """Return a scale or zero point at the dims of `x`, which may be run-time ones."""
    dims = b.dims(x)
    return b.op("multibroadcast", [v, x]) if DYN in dims else b.multibroadcast(v, dims)


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Value:
    """Import QuantizeLinear, by tensor, axis or block."""
    target = _target(b, node, zero, output_dtype)
    zero = None if zero is None else _as_scale(b, zero, scale)
    by = cast_number(precision) if precision else None
    s = spread(b, scale, x, axis, block_size)
    z = None if zero is None else spread(b, zero, x, axis, block_size)
    if not b.dtype(x).is_float:
        x = convert(b, x, FLOAT)
    if isinstance(target, Narrow):
        return node.mark(quantized(b, x, s, z, target, precision=by), target.onnx)
    if target.short in ("uint8", "int8") and b.dtype(x) is b.dtype(s) and by in (None, FLOAT):
        # op that fusion and the quantised kernels recognise
        operands = [x, *(_like(b, v, x) for v in (s, z) if v is not None)]
        return b.op("quantizelinear", *operands, out_type=target)
    return quantized(b, x, s, z, target, saturate=bool(saturate), precision=by)


@onnx_op("DequantizeLinear", since=10)
def dequantize_linear(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """Import DequantizeLinear, by tensor, axis or block."""
    zero = None if zero is None else _as_scale(b, zero, scale)
    s = spread(b, scale, x, axis, block_size)
    z = None if zero is None else spread(b, zero, x, axis, block_size)
    kind = b.dtype(scale)
    to = cast_number(output_dtype) if output_dtype else kind
    if b.dtype(x).short in ("uint8", "int8", "int32") and kind is FLOAT:
        operands = [x, *(_like(b, v, x) for v in (s, z) if v is not None)]
        out = b.op("dequantizelinear", *operands)
    else:
        # the difference of two integers is exact in i32, and in f32 for up to 16 bits
        wide = FLOAT if kind.is_low_precision else kind
        value = convert(b, x, wide)
        if z is not None:
            value = b.sub(value, convert(b, z, wide))
        out = b.mul(value, convert(b, s, wide))  # rounded once, to the result's type
    return convert(b, out, to)


@onnx_op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(b: Builder, node: Node, x: Value) -> tuple[Value, Value, Value]:
    """Import DynamicQuantizeLinear over the range of x and 0: scale = range / 255, zero point =
    round(-min / scale).
    """
    axes = list(range(len(b.dims(x))))
    top, bottom = (
        b.reshape(v, dims=[])
        for v in ((b.reduce_max(x, axes=axes), b.reduce_min(x, axes=axes)) if axes else (x, x))
    )
    top, bottom = b.max(top, 0), b.min(bottom, 0)
    scale = b.div(b.sub(top, bottom), 255)
    safe = b.where(b.convert(b.equal(scale, 0), target_type=dtypes.BOOL), 1, scale)
    place = b.nearbyint(b.clip(b.div(b.neg(bottom), safe), number(b, 0, x), number(b, 255, x)))
    zero = b.convert(place, target_type=dtypes.UINT8)
    return quantized(b, x, safe, zero, dtypes.UINT8), scale, zero


def _product_scale(b: Builder, out: Value, a: Value, w: Value, y: Value) -> Value:
    """Return a * w / y as f32, shaped to multiply `out` by."""
    factor = b.mul(convert(b, a, FLOAT), convert(b, w, FLOAT))
    return b.div(factor, convert(b, y, FLOAT))


@onnx_op("QLinearMatMul", since=10)
def qlinear_matmul(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    out_scale: Value,
    out_zero: Value,
) -> Value:
    """Import QLinearMatMul: a MatMulInteger, scaled and quantised."""
    total = matmul_integer(b, node, x, y, x_zero, y_zero)
    rows = x_scale
    if len(b.dims(rows)) == 1 and b.dims(rows)[0] != 1:
        rows = unsqueeze(b, rows, [1])
    factor = _product_scale(b, total, rows, y_scale, out_scale)
    value = b.mul(convert(b, total, FLOAT), scalar(b, factor))
    return quantized(b, value, number(b, 1, value), scalar(b, out_zero), b.dtype(out_zero))


def scalar(b: Builder, v: Value) -> Value:
    """Return a tensor of one element as a 0-d tensor; others as they are."""
    dims = b.dims(v)
    return reshape(b, v, []) if dims and all(d == 1 for d in dims) else v


@onnx_op("QLinearConv", since=10)
def qlinear_conv(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None = None,
    *,
    window: ConvAttributes,
) -> Value:
    """Import QLinearConv: a ConvInteger plus an i32 bias, scaled and quantised."""
    total = conv_integer(
        b, node, x, w, scalar(b, x_zero), scalar(b, w_zero), window=window,
    )  # fmt: skip
    rank = len(b.dims(total))

    def per_channel(v: Value) -> Value:
        v = scalar(b, v)
        return reshape(b, v, channel_dims(rank, 1)) if b.dims(v) else v

    if bias is not None:
        total = b.add(total, reshape(b, convert(b, bias, INT32), channel_dims(rank, 1)))
    factor = _product_scale(b, total, scalar(b, x_scale), per_channel(w_scale), scalar(b, y_scale))
    value = b.mul(convert(b, total, FLOAT), factor)
    return quantized(b, value, number(b, 1, value), scalar(b, y_zero), b.dtype(y_zero))

"""com.microsoft: 8-bit operators with scales: pointwise, pooling, matmul, attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT32
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import axes_in, axis_in, convert, squeeze, unsqueeze
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.contrib_attention import (
    hidden_sizes,
    self_attention,
    split_qkv,
)
from mgx_mlir.frontends.onnx.ops.contrib_fused import NEEDED, channels_first, channels_last, present
from mgx_mlir.frontends.onnx.ops.conv import ConvAttributes, PoolAttributes, average_pool
from mgx_mlir.frontends.onnx.ops.linear import matmul, matmul_integer
from mgx_mlir.frontends.onnx.ops.quant import (
    dequantize_linear,
    dynamic_quantize_linear,
    qlinear_conv,
    quantize_linear,
    quantized,
    scalar,
)
from mgx_mlir.frontends.onnx.ops.reduce import by_rows
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


def centred(b: Builder, x: Value, zero: Value | None) -> Value:
    """Return x - zero in i32."""
    x = convert(b, x, INT32)
    return x if zero is None else b.sub(x, convert(b, scalar(b, zero), INT32))


def real(b: Builder, x: Value, scale: Value, zero: Value | None) -> Value:
    """Return (x - zero) scale in f32."""
    return b.mul(convert(b, centred(b, x, zero), FLOAT), scalar(b, scale))


def stored(b: Builder, y: Value, scale: Value, zero: Value | None, like: Value) -> Value:
    """Return y quantised to the type of `like`."""
    at = None if zero is None else scalar(b, zero)
    return quantized(b, y, scalar(b, scale), at, b.dtype(like))


# ---- pointwise ---------------------------------------------------------------------------------


@onnx_op("QLinearAdd", domain=MS)
@onnx_op("QLinearMul", domain=MS)
def qlinear_binary(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value | None = None,
    y: Value = NEEDED,
    y_scale: Value = NEEDED,
    y_zero: Value | None = None,
    out_scale: Value = NEEDED,
    out_zero: Value | None = None,
) -> Value:
    """Import QLinearAdd, QLinearMul: dequantise the operands, combine them, quantise."""
    present(B=y, B_scale=y_scale, C_scale=out_scale)
    combine = b.add if node.op_type == "QLinearAdd" else b.mul
    found = combine(real(b, x, x_scale, x_zero), real(b, y, y_scale, y_zero))
    return stored(b, found, out_scale, out_zero, x)


@onnx_op("QLinearSigmoid", domain=MS)
def qlinear_sigmoid(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value | None = None,
    y_scale: Value = NEEDED,
    y_zero: Value | None = None,
) -> Value:
    """Import QLinearSigmoid: dequantise, sigmoid, quantise."""
    present(Y_scale=y_scale)
    return stored(b, b.sigmoid(real(b, x, x_scale, x_zero)), y_scale, y_zero, x)


@onnx_op("QLinearLeakyRelu", domain=MS)
def qlinear_leaky_relu(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value | None = None,
    y_scale: Value = NEEDED,
    y_zero: Value | None = None,
    *,
    alpha: float = 0.01,
) -> Value:
    """Import QLinearLeakyRelu: dequantise, leaky relu, quantise."""
    present(Y_scale=y_scale)
    y = b.leaky_relu(real(b, x, x_scale, x_zero), alpha=alpha)
    return stored(b, y, y_scale, y_zero, x)


@onnx_op("QLinearSoftmax", domain=MS)
def qlinear_softmax(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value | None = None,
    y_scale: Value = NEEDED,
    y_zero: Value = NEEDED,
    *,
    axis: int = -1,
    opset: int,
) -> Value:
    """Import QLinearSoftmax with ai.onnx's meaning at `opset`: before 13 over all dims from `axis`
    on.
    """
    present(y_scale=y_scale, y_zero_point=y_zero)
    y, rank = real(b, x, x_scale, x_zero), len(b.dims(x))
    axis = axis_in(axis, rank)
    if opset >= 13 or axis == rank - 1:
        y = b.softmax(y, axis=axis)
    else:
        y = by_rows(b, y, axis, lambda rows: b.softmax(rows, axis=1))
    return stored(b, y, y_scale, y_zero, x)


@onnx_op("QLinearWhere", domain=MS)
def qlinear_where(
    b: Builder,
    node: Node,
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    z_scale: Value,
    z_zero: Value,
) -> Value:
    """Import QLinearWhere: choose between dequantised operands, and quantise the choice."""
    chosen = b.where(condition, real(b, x, x_scale, x_zero), real(b, y, y_scale, y_zero))
    return stored(b, chosen, z_scale, z_zero, x)


@onnx_op("QLinearConcat", domain=MS)
def qlinear_concat(
    b: Builder, node: Node, y_scale: Value, y_zero: Value, *inputs: Value, axis: int
) -> Value:
    """Import QLinearConcat of triples: tensor, scale, zero point."""
    if not inputs or len(inputs) % 3:
        raise ModelError(f"expected triples of tensor, scale and zero point, got {len(inputs)}")
    parts = [
        stored(b, real(b, *inputs[i : i + 3]), y_scale, y_zero, y_zero)
        for i in range(0, len(inputs), 3)
    ]
    return b.concat(parts, axis=axis_in(axis, len(b.dims(parts[0]))))


@onnx_op("MulInteger", domain=MS)
def mul_integer(
    b: Builder,
    node: Node,
    x: Value,
    x_zero: Value | None = None,
    y: Value = NEEDED,
    y_zero: Value | None = None,
) -> Value:
    """Import MulInteger: the product in i32 of operands minus their zero points."""
    present(B=y)
    return b.mul(centred(b, x, x_zero), centred(b, y, y_zero))


@onnx_op("ReduceSumInteger", domain=MS)
def reduce_sum_integer(
    b: Builder, node: Node, x: Value, *, axes: Sequence[int], keepdims: int
) -> Value:
    """Import ReduceSumInteger: a sum in i32."""
    axes = axes_in(axes, len(b.dims(x)))
    total = b.reduce_sum(convert(b, x, INT32), axes=axes)
    return total if keepdims else squeeze(b, total, axes)


# ---- windows -----------------------------------------------------------------------------------


@onnx_op("QLinearAveragePool", domain=MS)
def qlinear_average_pool(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value | None = None,
    y_scale: Value = NEEDED,
    y_zero: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Import QLinearAveragePool: dequantise, average, quantise."""
    present(y_scale=y_scale)
    y = real(b, x, x_scale, x_zero)
    y = channels_first(b, y) if channels_last else y
    y = average_pool(
        b, node, y,
        window=PoolAttributes(kernel_shape, auto_pad, ceil_mode, dilations, pads, strides),
        count_include_pad=count_include_pad,
    )  # fmt: skip
    return _turned(b, stored(b, y, y_scale, y_zero, x), channels_last)


def _turned(b: Builder, y: Value, last: int) -> Value:
    return channels_last(b, y) if last else y


@onnx_op("QLinearGlobalAveragePool", domain=MS)
def qlinear_global_average_pool(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y_scale: Value,
    y_zero: Value,
    *,
    channels_last: int = 0,
) -> Value:
    """Import QLinearGlobalAveragePool: the mean of each channel."""
    rank = len(b.dims(x))
    axes = list(range(1, rank - 1)) if channels_last else list(range(2, rank))
    y = b.reduce_mean(real(b, x, x_scale, x_zero), axes=axes)
    return stored(b, y, y_scale, y_zero, x)


@onnx_op("QLinearReduceMean", domain=MS)
def qlinear_reduce_mean(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value | None = None,
    y_scale: Value = NEEDED,
    y_zero: Value | None = None,
    *,
    axes: Sequence[int],
    keepdims: int,
) -> Value:
    """Import QLinearReduceMean: dequantise, average along axes, quantise."""
    present(reduced_scale=y_scale)
    axes = axes_in(axes, len(b.dims(x)))
    y = b.reduce_mean(real(b, x, x_scale, x_zero), axes=axes)
    return stored(b, y if keepdims else squeeze(b, y, axes), y_scale, y_zero, x)


@onnx_op("QLinearConv", domain=MS)
def qlinear_conv_ms(
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
    channels_last: int = 0,
) -> Value:
    """Import com.microsoft's QLinearConv: ai.onnx's, whose input and result may be
    channels-last.
    """
    y = qlinear_conv(
        b, node, channels_first(b, x) if channels_last else x, x_scale, x_zero, w, w_scale, w_zero,
        y_scale, y_zero, bias, window=window,
    )  # fmt: skip
    return _turned(b, y, channels_last)


# ---- matmuls -----------------------------------------------------------------------------------


def _per_column(b: Builder, v: Value | None, rank: int) -> Value | None:
    """Return a scale or zero point of B: one for all, per column, or per column of each matrix."""
    if v is None:
        return None
    v = scalar(b, v)
    dims = b.dims(v)
    if len(dims) == 2 and rank > 2 and dims[0] != 1:
        return unsqueeze(b, v, [1])
    return v


def _is_row(b: Builder, v: Value) -> bool:
    """Return whether a scale or zero point has several numbers."""
    return any(d != 1 for d in b.dims(v))


def _less(b: Builder, x: Value, zero: Value | None) -> Value:
    """Return x - zero in f32."""
    real = convert(b, x, FLOAT)
    return real if zero is None else b.sub(real, convert(b, zero, FLOAT))


@onnx_op("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    x_scale: Value,
    w_scale: Value,
    x_zero: Value | None = None,
    w_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """Import MatMulIntegerToFloat: (x - x_zero)(w - w_zero) x_scale w_scale + bias.

    The result has the type of the scales. If x has a scale per column, which onnxruntime refuses,
    the operands are dequantised first.
    """
    rank, dtype = len(b.dims(w)), b.dtype(w_scale)
    if any(v is not None and _is_row(b, v) for v in (x_scale, x_zero)):
        left = b.mul(_less(b, x, x_zero), convert(b, x_scale, FLOAT))
        right = _less(b, w, _per_column(b, w_zero, rank))
        right = b.mul(right, _per_column(b, convert(b, w_scale, FLOAT), rank))
        out = matmul(b, left, right)
        return convert(b, out if bias is None else b.add(out, convert(b, bias, FLOAT)), dtype)
    zero = None if x_zero is None else scalar(b, x_zero)
    total = matmul_integer(b, node, x, w, zero, _per_column(b, w_zero, rank))
    rows = scalar(b, convert(b, x_scale, FLOAT))
    factor = b.mul(rows, _per_column(b, convert(b, w_scale, FLOAT), rank))
    out = b.mul(convert(b, total, FLOAT), factor)
    if bias is not None:
        out = b.add(out, convert(b, bias, FLOAT))
    return convert(b, out, dtype)


@onnx_op("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """Import DynamicQuantizeMatMul: x is quantised to 8 bits by its own range, as in
    DynamicQuantizeLinear.
    """
    codes, scale, zero = dynamic_quantize_linear(b, node, x)
    return matmul_integer_to_float(b, node, codes, w, scale, w_scale, zero, w_zero, bias)


onnx_table(
    {"MatMulInteger16": lambda b, x, y: matmul(b, convert(b, x, INT32), convert(b, y, INT32))},
    domain=MS,
)


@onnx_op("QGemm", domain=MS)
def qgemm(
    b: Builder,
    node: Node,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    c: Value | None = None,
    y_scale: Value | None = None,
    y_zero: Value = NEEDED,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """Import QGemm: alpha (x - x_zero)(w - w_zero) + c in i32, then scaled; f32 without a result
    scale.
    """
    total = b.dot(
        _turned2(b, centred(b, x, x_zero), transA),
        b.sub(_turned2(b, convert(b, w, INT32), transB), convert(b, scalar(b, w_zero), INT32)),
    )
    if c is not None:
        total = b.add(total, c)
    factor = b.mul(b.mul(scalar(b, x_scale), scalar(b, w_scale)), alpha)
    out = b.mul(convert(b, total, FLOAT), factor)
    if y_scale is None:
        return out
    present(y_zero_point=y_zero)
    return stored(b, out, y_scale, y_zero, y_zero)


def _turned2(b: Builder, x: Value, wanted: int) -> Value:
    return b.transpose(x, permutation=[1, 0]) if wanted else x


@onnx_op("QAttention", domain=MS)
def qattention(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    bias: Value,
    x_scale: Value,
    w_scale: Value,
    mask: Value | None = None,
    x_zero: Value | None = None,
    w_zero: Value | None = None,
    past: Value | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Outputs:
    """Import QAttention: the first matmul is in integers, all later steps in floats."""
    if do_rotary or past_present_share_buffer:
        raise NotSupported("do_rotary" if do_rotary else "past_present_share_buffer")
    packed = matmul_integer_to_float(b, node, x, w, x_scale, w_scale, x_zero, w_zero, bias)
    q, k, v = split_qkv(b, packed, hidden_sizes(b.dims(w)[1], None), num_heads)
    return self_attention(
        b, x, q, k, v, mask, past, None, None, mask_filter_value=mask_filter_value, scale=scale,
        unidirectional=unidirectional, share_buffer=0,
    )  # fmt: skip


# ---- conversions -------------------------------------------------------------------------------


@onnx_op("QuantizeLinear", domain=MS)
def quantize_linear_ms(
    b: Builder, node: Node, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1
) -> Value:
    """Import com.microsoft's QuantizeLinear: ai.onnx's from before 16-bit types, with them."""
    if zero is None:
        zero = b.literal(np.zeros(b.dims(scale), np.uint8))
    return quantize_linear(b, node, x, scale, zero, axis=axis)


@onnx_op("DequantizeLinear", domain=MS)
def dequantize_linear_ms(
    b: Builder, node: Node, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1
) -> Value:
    """Import com.microsoft's DequantizeLinear: as ai.onnx's, without blocks."""
    return dequantize_linear(b, node, x, scale, zero, axis=axis)

"""com.microsoft: activations, biases, and matmuls with a fused activation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import BF16, FLOAT, UINT32
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.helpers import (
    axis_in,
    convert,
    number,
    same_extent,
    slice_,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.activation import (
    gelu_erf,
    gelu_tanh,
    hard_sigmoid_of,
    softplus_of,
    softsign_of,
    swish_of,
    thresholded,
)
from mgx_mlir.frontends.onnx.ops.conv import ConvAttributes, biased, convolution
from mgx_mlir.frontends.onnx.ops.linear import gemm_of, matmul
from mgx_mlir.frontends.onnx.ops.reduce import by_rows
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.smooth import wide_sum
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


NEEDED: Any = None  # default of a required operand after an optional one: see `present`


def present(**operands: Value | None) -> None:
    """Raise ModelError if an operand is absent that is required after an optional one."""
    for name, value in operands.items():
        if value is None:
            raise ModelError(f"expected input '{name}'")


def of_columns(b: Builder, bias: Value, x: Value) -> Value:
    """Return a bias as long as the last dim of `x`, checked at run time."""
    last = len(b.dims(x)) - 1
    if len(b.dims(bias)) != 1 or last < 0:
        got = show_dims(b.dims(bias))
        raise ModelError(f"bias expected as many elements as the last dim, got dims {got}")
    return same_extent(b, bias, 0, x, last, "a bias as long as the last dim")


# ---- activations -------------------------------------------------------------------------------


onnx_table(
    {
        "Gelu": lambda b, x: gelu_erf(b, x),
        "BiasGelu": lambda b, x, bias: convert(b, gelu_erf(b, _sum(b, x, bias)), b.dtype(x)),
        "QuickGelu": lambda b, x, *, alpha=1.702: swish_of(b, x, alpha),
        "BiasAdd": lambda b, x, bias, skip: convert(b, _sum(b, x, bias, skip), b.dtype(x)),
    },
    domain=MS,
)


def _sum(b: Builder, x: Value, bias: Value, *more: Value) -> Value:
    """Return x + bias and more in f32, for 16-bit floats."""
    return wide_sum(b, [x, of_columns(b, bias, x), *more])


@onnx_op("FastGelu", domain=MS)
def fast_gelu(b: Builder, node: Node, x: Value, bias: Value | None = None) -> Value:
    """Import FastGelu: gelu(x + bias), by tanh."""
    total = wide_sum(b, [x] if bias is None else [x, of_columns(b, bias, x)])
    return convert(b, gelu_tanh(b, total), b.dtype(x))


@dataclass(frozen=True)
class SwigluAttributes(Attributes):
    """Attributes of SwiGLU: G sigmoid(alpha G) (L + beta) of both halves; a limit <= 0 disables
    clamping.
    """

    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    limit: float = 0.0

    def of(self, b: Builder, gate: Value, up: Value, round_activation: bool = False) -> Value:
        """Return the gated half, computed in f32 for 16-bit floats and rounded once at the end."""
        dtype, kind = b.dtype(gate), wide(b.dtype(gate))
        gate, up = convert(b, gate, kind), convert(b, up, kind)
        if self.limit > 0:
            gate = b.min(gate, self.limit)
            up = b.clip(up, number(b, -self.limit, up), number(b, self.limit, up))
        gate = swish_of(b, gate, self.activation_alpha)
        if round_activation:
            gate = convert(b, convert(b, gate, dtype), kind)
        up = b.add(up, self.activation_beta) if self.activation_beta else up
        return convert(b, b.mul(gate, up), dtype)


def halves(b: Builder, x: Value, start: int = 0) -> tuple[Value, Value]:
    """Return the two equal parts of the last dim from `start` on."""
    last = len(b.dims(x)) - 1
    size = b.dims(x)[last]
    if size == DYN or size < start or (size - start) % 2:
        raise ModelError(f"expected an even number of columns from {start} on, got {size}")
    middle = start + (size - start) // 2
    return slice_(b, x, [last], [start], [middle]), slice_(b, x, [last], [middle], [size])


@onnx_op("SwiGLU", domain=MS)
def swiglu(
    b: Builder,
    node: Node,
    gate: Value,
    up: Value | None = None,
    *,
    round_activation: int = 0,
    swiglu: SwigluAttributes,
) -> Value:
    """Import SwiGLU of com.microsoft; without `up` the gate holds both halves."""
    if up is None:
        gate, up = halves(b, gate)
    return swiglu.of(b, gate, up, bool(round_activation))


@onnx_op("RouterGateUpProj", domain=MS)
def router_gate_up_proj(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    *,
    activation: str = "swiglu",
    router_size: int,
    swiglu: SwigluAttributes,
) -> Outputs:
    """Import RouterGateUpProj: one matmul, split into a router's scores and a SwiGLU's halves."""
    if activation != "swiglu":
        raise ModelError(f"attribute 'activation' expected swiglu, got {activation}")
    y = matmul(b, x, w)
    gate, up = halves(b, y, router_size)
    last = len(b.dims(y)) - 1
    return slice_(b, y, [last], [0], [router_size]), swiglu.of(b, gate, up)


@onnx_op("ScaledSiLU", domain=MS)
def scaled_silu(
    b: Builder, node: Node, x: Value, scale: Value | None = None, *, alpha: float = 1.0
) -> Outputs:
    """z sigmoid(z) of z = scale x, each rounded to the type of x."""
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    value = convert(b, x, kind)
    factor = number(b, alpha, value) if scale is None else convert(b, scale, kind)
    if b.dims(factor):
        factor = b.reshape(factor, dims=[])
    scaled = convert(b, b.mul(value, factor), dtype)
    return b.mul(scaled, b.sigmoid(scaled))


@onnx_op("GatedAdd", domain=MS)
def gated_add(
    b: Builder, node: Node, x: Value, y: Value, gate: Value, gate_weight: Value | None = None
) -> Value:
    """Import GatedAdd: x + y gate. With a weight the gate is sigmoid(gate weight), each step
    rounded.
    """
    if gate_weight is not None:
        kind = b.dtype(x)
        if kind is not BF16:
            raise NotSupported(f"gate_weight with {kind}")
        product = convert(
            b, matmul(b, convert(b, gate, FLOAT), convert(b, gate_weight, FLOAT)), kind
        )
        gate = convert(b, b.sigmoid(convert(b, product, FLOAT)), kind)
    return b.add(x, b.mul(y, gate))


@onnx_op("BiasSplitGelu", domain=MS)
def bias_split_gelu(b: Builder, node: Node, x: Value, bias: Value) -> Value:
    """Import BiasSplitGelu: the first half of x + bias times the gelu of the second."""
    left, right = halves(b, wide_sum(b, [x, of_columns(b, bias, x)]))
    return convert(b, b.mul(left, gelu_erf(b, right)), b.dtype(x))


@onnx_op("BiasSoftmax", domain=MS)
def bias_softmax(
    b: Builder, node: Node, data: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int
) -> Value:
    """softmax(data + bias) over all dims from `axis` on.

    The bias has data's dims from `axis` on. Before `axis` it has data's first dims (inner
    broadcast) or last dims (outer), and 1 elsewhere.
    """
    rank, own = len(b.dims(data)), b.dims(bias)
    axis = axis_in(axis, rank)
    missing = rank - len(own)
    if missing < 0:
        raise ModelError(f"bias of rank {len(own)} does not fit data of rank {rank}")
    if missing and is_inner_broadcast:
        kept = len(own) - (rank - axis)
        bias = unsqueeze(b, bias, range(kept, kept + missing))
    dtype = b.dtype(data)
    total = b.add(convert(b, data, wide(dtype)), convert(b, bias, wide(dtype)))
    if axis == rank - 1:
        return convert(b, b.softmax(total, axis=axis), dtype)
    return convert(b, by_rows(b, total, axis, lambda rows: b.softmax(rows, axis=1)), dtype)


# ---- dropout -----------------------------------------------------------------------------------


def _inference(b: Builder, node: Node, training_mode: Value | None, ratio: Value | None) -> None:
    if training_mode is None or not node.const(training_mode, "training_mode").any():
        return
    if ratio is None or float(node.const(ratio, "ratio").reshape(-1)[0]) != 0:
        raise NotSupported("training_mode")


def _ones(b: Builder, node: Node, data: Value) -> Value | None:
    """Return a mask that drops nothing if the output is used."""
    if not node.wants(1):
        return None
    dims, kept = b.dims(data), b.literal(np.array(True))
    if DYN in dims:
        return b.broadcast_with_dims(kept, b.shape(data))
    return b.multibroadcast(kept, dims)


def _one_bits(b: Builder, node: Node, data: Value) -> Value | None:
    """Return a bit for each element of data, all set, in 32-bit words."""
    if not node.wants(1):
        return None
    dims = b.dims(data)
    if DYN in dims:
        raise NotSupported("a bit mask of data with dynamic dims")
    words = -(-math.prod(dims) // 32)
    return b.multibroadcast(b.literal((1 << 32) - 1, UINT32), [words])


@onnx_op("BiasDropout", domain=MS)
@onnx_op("BitmaskBiasDropout", domain=MS)
def bias_dropout(
    b: Builder,
    node: Node,
    data: Value,
    bias: Value,
    residual: Value | None = None,
    ratio: Value | None = None,
    training_mode: Value | None = None,
    *,
    seed: int | None = None,
) -> Outputs:
    """Import BiasDropout, BitmaskBiasDropout: data + bias + residual; nothing is dropped."""
    _inference(b, node, training_mode, ratio)
    mask = _ones if node.op_type == "BiasDropout" else _one_bits
    bias = of_columns(b, bias, data) if len(b.dims(bias)) == 1 else bias
    terms = [data, bias] if residual is None else [data, bias, residual]
    return convert(b, wide_sum(b, terms), b.dtype(data)), mask(b, node, data)


@onnx_op("BitmaskDropout", domain=MS)
def bitmask_dropout(
    b: Builder,
    node: Node,
    data: Value,
    ratio: Value | None = None,
    training_mode: Value | None = None,
    *,
    seed: int | None = None,
) -> Outputs:
    """Import BitmaskDropout: the data, and a mask of set bits."""
    _inference(b, node, training_mode, ratio)
    return data, _one_bits(b, node, data)


# ---- activations by name -----------------------------------------------------------------------

_SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def _clip(b: Builder, x: Value, low: float, high: float) -> Value:
    return b.clip(x, number(b, low, x), number(b, high, x))


# activation name: default parameters and function
ACTIVATIONS: dict[str, tuple[tuple[float, ...], Callable[..., Value]]] = {
    "Relu": ((), lambda b, x: b.relu(x)),
    "Sigmoid": ((), lambda b, x: b.sigmoid(x)),
    "Tanh": ((), lambda b, x: b.tanh(x)),
    "Softplus": ((), softplus_of),
    "Softsign": ((), softsign_of),
    "LeakyRelu": ((0.01,), lambda b, x, alpha: b.leaky_relu(x, alpha=alpha)),
    "Elu": ((1.0,), lambda b, x, alpha: b.elu(x, alpha=alpha)),
    "ThresholdedRelu": ((1.0,), thresholded),
    "HardSigmoid": ((0.2, 0.5), hard_sigmoid_of),
    "Selu": (_SELU, lambda b, x, alpha, gamma: b.mul(b.elu(x, alpha=alpha), gamma)),
    "Clip": ((-math.inf, math.inf), _clip),
    "Gelu": ((), gelu_erf),
    "QuickGelu": ((1.702,), lambda b, x, alpha: b.mul(x, b.sigmoid(b.mul(x, alpha)))),
    "HardSwish": ((), lambda b, x: b.mul(x, hard_sigmoid_of(b, x, 1 / 6, 0.5))),
    "SiLU": ((), lambda b, x: b.mul(x, b.sigmoid(x))),
}


def activated(b: Builder, x: Value, name: str | None, parameters: Sequence[float | None]) -> Value:
    """Apply the activation that a node names; missing parameters have their defaults."""
    if not name:
        return x
    found = ACTIVATIONS.get(name)
    if found is None:
        raise NotSupported(f"activation {name}")
    defaults, function = found
    given = [*parameters, *[None] * len(defaults)]
    values = [d if g is None else g for g, d in zip(given, defaults, strict=False)]
    return function(b, x, *values)


# ---- matmuls -----------------------------------------------------------------------------------


def _batch_first(b: Builder, v: Value, trans: int, batch: int) -> Value:
    """Return a matrix operand with its flags applied; `batch`: its rows come before the batch
    dims.
    """
    rank = len(b.dims(v))
    if rank < 2:
        return v
    order = list(range(rank))
    if batch and rank > 2:
        order = [*range(1, rank - 1), 0, rank - 1]
    if trans:
        order[-2:] = reversed(order[-2:])
    return transpose(b, v, order)


@dataclass(frozen=True)
class MatMulAttributes(Attributes):
    """Attributes of FusedMatMul: transpositions of the operands, and a factor."""

    alpha: float = 1.0
    transA: int = 0
    transB: int = 0
    transBatchA: int = 0
    transBatchB: int = 0


@onnx_op("FusedMatMul", domain=MS)
def fused_matmul(b: Builder, node: Node, x: Value, y: Value, *, product: MatMulAttributes) -> Value:
    """Import FusedMatMul: alpha x y; operands may be transposed, or have the batch dims inside."""
    left = _batch_first(b, x, product.transA, product.transBatchA)
    right = _batch_first(b, y, product.transB, product.transBatchB)
    out = matmul(b, left, right)
    return out if product.alpha == 1 else b.mul(out, product.alpha)


@onnx_op("TransposeMatMul", domain=MS)
def transpose_matmul(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """Import TransposeMatMul, the former name of FusedMatMul."""
    return fused_matmul(b, node, x, y, product=MatMulAttributes(alpha, transA, transB))


@onnx_op("FusedMatMulActivation", domain=MS)
def fused_matmul_activation(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_axis: int | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    product: MatMulAttributes,
) -> Value:
    """Import FusedMatMulActivation: FusedMatMul followed by an activation."""
    out = fused_matmul(b, node, x, y, product=product)
    if activation == "Softmax":
        axis = axis_in(-1 if activation_axis is None else activation_axis, len(b.dims(out)))
        return b.softmax(out, axis=axis)
    return activated(b, out, activation, (activation_alpha, activation_beta, activation_gamma))


@onnx_op("FusedGemm", domain=MS)
def fused_gemm(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    c: Value | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """Import FusedGemm: Gemm followed by an activation."""
    out = gemm_of(b, x, y, c, alpha, beta, transA, transB)
    second = activation_gamma if activation == "Selu" else activation_beta
    return activated(b, out, activation, (activation_alpha, second))


@onnx_op("GemmFastGelu", domain=MS)
def gemm_fast_gelu(b: Builder, node: Node, x: Value, w: Value, bias: Value | None = None) -> Value:
    """Import GemmFastGelu: gelu(x w + bias), by tanh."""
    out = matmul(b, x, w)
    return gelu_tanh(b, out if bias is None else b.add(out, of_columns(b, bias, out)))


# ---- convolutions ------------------------------------------------------------------------------


@onnx_op("FusedConv", domain=MS)
def fused_conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None = None,
    z: Value | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    window: ConvAttributes,
) -> Value:
    """activation(conv(x, w) + bias + z)."""
    out = convolution(b, x, w, window)
    out = biased(b, out, bias)
    return activated(b, out if z is None else b.add(out, z), activation, activation_params)


def channels_first(b: Builder, x: Value) -> Value:
    """Return {batch, spatial.., channels} as {batch, channels, spatial..}."""
    rank = len(b.dims(x))
    return transpose(b, x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(b: Builder, x: Value) -> Value:
    """Return {batch, channels, spatial..} as {batch, spatial.., channels}."""
    rank = len(b.dims(x))
    return transpose(b, x, [0, *range(2, rank), 1])


@onnx_op("NhwcConv", domain=MS)
def nhwc_conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None = None,
    *,
    window: ConvAttributes,
) -> Value:
    """Import NhwcConv: input and result are channels-last; the weights are those of Conv."""
    x = channels_first(b, x)
    out = convolution(b, x, w, window)
    return channels_last(b, biased(b, out, bias))


@onnx_op("NhwcFusedConv", domain=MS)
def nhwc_fused_conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    bias: Value | None = None,
    z: Value | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    window: ConvAttributes,
) -> Value:
    """Import NhwcFusedConv: activation(conv(x, w) + bias + z), channels-last."""
    z = None if z is None else channels_first(b, z)
    out = fused_conv(
        b, node, channels_first(b, x), w, bias, z, activation=activation,
        activation_params=activation_params, window=window,
    )  # fmt: skip
    return channels_last(b, out)

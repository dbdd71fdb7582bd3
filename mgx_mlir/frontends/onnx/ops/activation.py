"""Activations: piecewise and smooth functions of one tensor, and Clip and Dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import BOOL, DOUBLE, FLOAT
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits, smooth
from mgx_mlir.frontends.helpers import (
    axis_in,
    axis_range,
    compare,
    convert,
    number,
    single,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.random import dropped_in_training
from mgx_mlir.frontends.onnx.registry import CONSUMED, onnx_op, onnx_table
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import longer
from mgx_mlir.frontends.smooth import expm1, widened
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

onnx_table(
    {
        "Elu": lambda b, x, *, alpha=1.0: b.elu(x, alpha=alpha),
        "LeakyRelu": lambda b, x, *, alpha=0.01: b.leaky_relu(x, alpha=alpha),
    },
    since=6,
    legacy=CONSUMED,
)
onnx_table({"PRelu": lambda b, x, slope: b.prelu(x, slope)}, since=7)  # the slope broadcasts to x
onnx_table({"Softplus": lambda b, x: softplus_of(b, x), "Softsign": lambda b, x: softsign_of(b, x)})
onnx_table({"ThresholdedRelu": lambda b, x, *, alpha=1.0: thresholded(b, x, alpha)}, since=10)
onnx_table({"HardSwish": lambda b, x: hard_swish_of(b, x)}, since=14)
onnx_table({"Mish": lambda b, x: widened(b, x, lambda v: smooth.mish(b, v))}, since=18)
onnx_table({"Swish": lambda b, x, *, alpha=1.0: swish_of(b, x, alpha)}, since=24)


@onnx_op("PRelu", since=1)
def prelu_1(
    b: Builder, node: Node, x: Value, slope: Value, *, consumed_inputs: Sequence[int] | None = None
) -> Value:
    """Lay a slope of one dim along axis 1."""
    dims, rank = b.dims(slope), len(b.dims(x))
    if len(dims) == 1 and dims[0] != 1 and rank > 2:
        slope = unsqueeze(b, slope, range(1, rank - 1))
    return b.prelu(x, slope)


@onnx_op("Selu", since=6)
def selu(
    b: Builder,
    node: Node,
    x: Value,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Value:
    """Import Selu: gamma elu(x, alpha)."""
    return widened(b, x, lambda v: b.mul(b.elu(v, alpha=alpha), gamma))


@onnx_op("Selu", since=1)
def selu_1(
    b: Builder,
    node: Node,
    x: Value,
    *,
    alpha: float = 1.6732,
    gamma: float = 1.0507,
    consumed_inputs: Sequence[int] | None = None,
) -> Value:
    """Import Selu of opset 1, whose default numbers have fewer digits."""
    return widened(b, x, lambda v: b.mul(b.elu(v, alpha=alpha), gamma))


@onnx_op("Celu", since=12)
def celu(b: Builder, node: Node, x: Value, *, alpha: float = 1.0) -> Value:
    """Import Celu: max(x, 0) + min(0, alpha (exp(x / alpha) - 1)) = alpha elu(x / alpha)."""
    if alpha == 0:
        raise ModelError("attribute 'alpha' expected a value other than 0")
    return widened(b, x, lambda v: _celu(b, v, alpha))


def _celu(b: Builder, x: Value, alpha: float) -> Value:
    ratio = b.div(x, alpha)
    low = b.elu(ratio) if alpha > 0 else expm1(b, ratio)
    return b.add(b.max(x, 0), b.min(b.mul(low, alpha), 0))


@onnx_op("HardSigmoid", since=1)
def hard_sigmoid(
    b: Builder,
    node: Node,
    x: Value,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
    consumed_inputs: Sequence[int] | None = None,
) -> Value:
    """Import HardSigmoid: alpha x + beta, clipped to [0, 1]."""
    return hard_sigmoid_of(b, x, alpha, beta)


def hard_sigmoid_of(b: Builder, x: Value, alpha: float, beta: float) -> Value:
    """Return alpha x + beta, clipped to [0, 1]."""
    return widened(b, x, lambda v: _hard_sigmoid(b, v, alpha, beta))


def _hard_sigmoid(b: Builder, x: Value, alpha: float, beta: float) -> Value:
    line = b.add(b.mul(x, alpha), beta)
    return b.clip(line, number(b, 0, x), number(b, 1, x))


def hard_swish_of(b: Builder, x: Value) -> Value:
    """Return x times its hard sigmoid of alpha 1/6 and beta 1/2."""
    return widened(b, x, lambda v: b.mul(v, _hard_sigmoid(b, v, 1 / 6, 0.5)))


def softplus_of(b: Builder, x: Value) -> Value:
    """Return log(1 + exp(x)), which never overflows and keeps its tail."""
    return widened(b, x, lambda v: smooth.softplus(b, v))


def softsign_of(b: Builder, x: Value) -> Value:
    """Return x / (1 + |x|)."""
    return widened(b, x, lambda v: b.div(v, b.add(b.abs(v), 1)))


def thresholded(b: Builder, x: Value, alpha: float) -> Value:
    """Return x where it is above alpha, else 0."""
    return b.where(compare(b, "greater", _wide(b, x), alpha), x, 0)


def _wide(b: Builder, x: Value) -> Value:
    """Return 16-bit floats as f32: a float threshold must not be rounded to their type."""
    return convert(b, x, FLOAT) if b.dtype(x).is_low_precision else x


@onnx_op("Shrink", since=9)
def shrink(b: Builder, node: Node, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """Import Shrink: x moved by `bias` towards 0, and 0 within [-lambd, lambd].

    Integer results are truncated.
    """
    dtype = b.dtype(x)
    if not dtype.is_float and (bias != int(bias) or lambd != int(lambd)):
        real = convert(b, x, DOUBLE if dtype.size > 2 else FLOAT)
        return convert(b, shrink(b, node, real, bias=bias, lambd=lambd), dtype)
    wide = _wide(b, x)
    above = b.where(compare(b, "greater", wide, lambd), b.sub(x, bias), 0)
    return b.where(compare(b, "less", wide, -lambd), b.add(x, bias), above)


@onnx_op("Gelu", since=20)
def gelu(b: Builder, node: Node, x: Value, *, approximate: str = "none") -> Value:
    """Import Gelu, by erf or by its approximation with tanh."""
    if approximate == "none":
        return gelu_erf(b, x)
    if approximate == "tanh":
        return gelu_tanh(b, x)
    raise ModelError(f"attribute 'approximate' expected none or tanh, got {approximate}")


def gelu_erf(b: Builder, x: Value) -> Value:
    """x / 2 (1 + erf(x / sqrt 2))."""
    return widened(b, x, lambda v: _gelu_erf(b, v))


def _gelu_erf(b: Builder, x: Value) -> Value:
    return b.mul(b.mul(x, 0.5), b.add(b.erf(b.mul(x, math.sqrt(0.5))), 1))


def gelu_tanh(b: Builder, x: Value) -> Value:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    return widened(b, x, lambda v: _gelu_tanh(b, v))


def _gelu_tanh(b: Builder, x: Value) -> Value:
    cube = b.mul(b.mul(b.mul(x, x), x), 0.044715)
    inner = b.mul(b.add(x, cube), math.sqrt(2 / math.pi))
    return b.mul(b.mul(x, 0.5), b.add(b.tanh(inner), 1))


def swish_of(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    """x sigmoid(alpha x)."""
    return widened(b, x, lambda v: b.mul(v, b.sigmoid(v if alpha == 1 else b.mul(v, alpha))))


@onnx_op("Clip", since=11)
def clip(
    b: Builder, node: Node, x: Value, low: Value | None = None, high: Value | None = None
) -> Value:
    """Import Clip: min(max(x, low), high); if low > high the result is high."""
    dtype = b.dtype(x)
    if low is None and high is None:
        return x
    if low is not None:
        low = single(b, low, "min")
    if high is not None:
        high = single(b, high, "max")
    if low is not None and high is not None:
        return b.clip(x, low, high)
    if dtype.is_bool:
        raise ModelError("expected numbers, got bool elements")
    return b.min(x, high) if low is None else b.max(x, low)


@onnx_op("Clip", since=6, legacy=CONSUMED)
def clip_6(
    b: Builder,
    node: Node,
    x: Value,
    *,
    max: float = float(np.finfo(np.float32).max),
    min: float = float(np.finfo(np.float32).min),
) -> Value:
    """Import Clip of opsets 6 to 10, whose bounds are attributes; f32's extremes mean no bound."""
    top = np.finfo(np.float32).max
    if min <= -top and max >= top:
        return x
    if max >= top:
        return b.max(x, min)
    if min <= -top:
        return b.min(x, max)
    return b.clip(x, number(b, min, x), number(b, max, x))


# ---- Dropout: the identity at inference --------------------------------------------------------


def _dropped(b: Builder, node: Node, x: Value, mask_like_data: bool = False) -> tuple[Any, ...]:
    mask = None
    if node.wants(1):
        dims = b.dims(x)
        kind = b.dtype(x) if mask_like_data else BOOL
        if DYN in dims:
            ones = b.literal(np.array(True))
            mask = convert(b, b.broadcast_with_dims(ones, b.shape(x)), kind)
        else:
            limits.filled(dims)
            mask = b.literal(np.broadcast_to(np.ones((), kind.np), dims))
    return x, mask


@onnx_op("Dropout", since=12)
def dropout(
    b: Builder,
    node: Node,
    x: Value,
    ratio: Value | None = None,
    training_mode: Value | None = None,
    *,
    seed: int | None = None,
) -> Outputs:
    """Import Dropout, which drops nothing except in training; that may be known only at run
    time.
    """
    if training_mode is None:
        return _dropped(b, node, x)
    training, share = b.const(training_mode), None if ratio is None else b.const(ratio)
    if (training is not None and not training.any()) or (share is not None and not share.any()):
        return _dropped(b, node, x)
    return dropped_in_training(b, node, x, ratio, training_mode, seed)


@onnx_op("Dropout", since=7)
@onnx_op("Dropout", since=10)
def dropout_7(b: Builder, node: Node, x: Value, *, ratio: float = 0.5) -> Outputs:
    """Import Dropout of opsets 7 to 11: before 10 the mask has the type of the data."""
    return _dropped(b, node, x, mask_like_data=node.opset < 10)


@onnx_op("Dropout", since=1)
def dropout_1(
    b: Builder,
    node: Node,
    x: Value,
    *,
    ratio: float = 0.5,
    is_test: int = 0,
    consumed_inputs: Sequence[int] | None = None,
) -> Outputs:
    """Import Dropout of opsets 1 to 6; refuse training."""
    if not is_test:
        raise NotSupported("training")
    return _dropped(b, node, x, mask_like_data=True)


@onnx_op("Hardmax", since=13)
def hardmax(b: Builder, node: Node, x: Value, *, axis: int = -1) -> Value:
    """Import Hardmax: 1 at the first largest element along `axis`, 0 elsewhere."""
    rank = len(b.dims(x))
    axis = axis_in(axis, rank)
    if b.dims(x)[axis] == 0:
        return x
    held = x
    # the axis may be empty: one more element, which is never the first largest
    if b.dims(x)[axis] == DYN:
        held = longer(b, x, axis, b.literal(np.array(b.dtype(x).lowest(), b.dtype(x).np)))
    first = b.argmax(held, axis=axis, select_last_index=False)
    places = unsqueeze(b, axis_range(b, x, axis), range(1, rank - axis))
    return convert(b, compare(b, "equal", places, first), b.dtype(x))

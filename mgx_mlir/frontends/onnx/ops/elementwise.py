"""Elementwise arithmetic, comparison, logic and bits, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DOUBLE, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.core.subbyte_types import BY_ONNX
from mgx_mlir.frontends.bounds import nonzero_divisor
from mgx_mlir.frontends.helpers import (
    axis_in,
    compare,
    convert,
    greater_equal,
    less_equal,
    same_extent,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.casts import cast, to_narrow
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import CONSUMED, onnx_op, onnx_table
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.smooth import wide_sum
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_UNARY = {
    "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "IsNaN": "isnan",
    "Not": "not_", "Round": "nearbyint", "Sign": "sign", "Sin": "sin", "Sinh": "sinh",
    "Tan": "tan", "Identity": "identity",
}  # fmt: skip
_UNARY_SINCE_1 = {
    "Abs": "abs", "Ceil": "ceil", "Exp": "exp", "Floor": "floor", "Log": "log", "Neg": "neg",
    "Reciprocal": "recip", "Relu": "relu", "Sigmoid": "sigmoid", "Sqrt": "sqrt", "Tanh": "tanh",
}  # fmt: skip


def _unary(name: str) -> Callable[[Builder, Value], Value]:
    return lambda b, x: getattr(b, name)(x)


onnx_table({onnx_name: _unary(name) for onnx_name, name in _UNARY.items()})
onnx_table(
    {onnx_name: _unary(name) for onnx_name, name in _UNARY_SINCE_1.items()},
    since=6,
    legacy=CONSUMED,
)


def legacy_operand(b: Builder, x: Value, y: Value, axis: int | None, broadcast: int) -> Value:
    """Return the second operand of a binary op before opset 7, aligned at `axis` of the first."""
    dims, own = b.dims(x), b.dims(y)
    if not broadcast:
        apart = any(d != e and DYN not in (d, e) for d, e in zip(dims, own, strict=False))
        if len(dims) != len(own) or apart:
            have = f"{show_dims(dims)} and {show_dims(own)}"
            raise ModelError(f"dims {have} differ and broadcast is not set")
        for i in range(len(dims)):
            y = same_extent(b, y, i, x, i, f"operands of one dim {i}")
        return y
    if axis is None:
        return y
    axis = axis_in(axis, len(dims))
    after = len(dims) - axis - len(own)
    if after < 0:
        raise ModelError(f"axis {axis} is too far right for dims {own} in {dims}")
    return unsqueeze(b, y, range(len(own), len(own) + after))


def _register_binary(onnx_name: str, function: Callable[..., Value]) -> None:
    @onnx_op(onnx_name, since=7)
    def binary(b: Builder, node: Node, x: Value, y: Value) -> Value:
        return function(b, x, y)

    @onnx_op(onnx_name, since=1)
    def binary_1(
        b: Builder,
        node: Node,
        x: Value,
        y: Value,
        *,
        axis: int | None = None,
        broadcast: int = 0,
        consumed_inputs: Sequence[int] | None = None,
    ) -> Value:
        return function(b, x, legacy_operand(b, x, y, axis, broadcast))


def power(b: Builder, x: Value, y: Value) -> Value:
    """x ** y in the type of x. An integer base is raised in f64, exact below 2**45.

    The relative error of exp(y log x) is below 2**-45: a result that close to an integer is that
    integer.
    """
    base, exponent = b.dtype(x), b.dtype(y)
    if base.is_float:
        return b.pow(x, convert(b, y, base))
    if exponent is base:
        return b.pow(x, y)
    found = b.pow(convert(b, x, DOUBLE), convert(b, y, DOUBLE))
    whole = b.nearbyint(found)
    near = less_equal(b, b.abs(b.sub(found, whole)), b.mul(b.abs(found), 2.0**-45))
    return convert(b, b.where(near, whole, found), base)


def _divide(b: Builder, x: Value, y: Value) -> Value:
    return b.div(x, nonzero_divisor(b, y))


for _onnx_name, _function in {
    "Add": lambda b, x, y: b.add(x, y),
    "Sub": lambda b, x, y: b.sub(x, y),
    "Mul": lambda b, x, y: b.mul(x, y),
    "Div": _divide,
    "Pow": power,
    "And": lambda b, x, y: b.logical_and(x, y),
    "Or": lambda b, x, y: b.logical_or(x, y),
    "Xor": lambda b, x, y: b.logical_xor(x, y),
    "Equal": lambda b, x, y: compare(b, "equal", x, y),
    "Greater": lambda b, x, y: compare(b, "greater", x, y),
    "Less": lambda b, x, y: compare(b, "less", x, y),
}.items():
    _register_binary(_onnx_name, _function)


onnx_table({"Where": lambda b, cond, x, y: b.where(cond, x, y)}, since=9)
# both comparisons are false for NaN
onnx_table(
    {
        "GreaterOrEqual": lambda b, x, y: greater_equal(b, x, y),
        "LessOrEqual": lambda b, x, y: less_equal(b, x, y),
    },
    since=12,
)


@onnx_op("Mod", since=10)
def mod(b: Builder, node: Node, x: Value, y: Value, *, fmod: int = 0) -> Value:
    """Import Mod: the sign of the divisor, or with `fmod` of the dividend."""
    y = nonzero_divisor(b, y)
    return b.fmod(x, y) if fmod else b.mod(x, y)


def _register_variadic(onnx_name: str, name: str) -> None:
    @onnx_op(onnx_name, since=6, legacy=CONSUMED)
    def variadic(b: Builder, node: Node, *xs: Value) -> Value:
        return _folded(b, name, xs, onnx_name)


def _folded(b: Builder, name: str, xs: tuple[Value, ...], onnx_name: str) -> Value:
    if not xs or any(x is None for x in xs):
        raise ModelError("expected at least one input, none of them absent")
    if len(xs) == 1:
        return xs[0]
    if name == "add":
        total = wide_sum(b, xs)
        return convert(b, b.div(total, len(xs)) if onnx_name == "Mean" else total, b.dtype(xs[0]))
    out = xs[0]
    for x in xs[1:]:
        out = getattr(b, name)(out, x)
    return out


for _onnx_name, _name in {"Max": "max", "Min": "min", "Sum": "add", "Mean": "add"}.items():
    _register_variadic(_onnx_name, _name)


@onnx_op("IsInf", since=10)
def is_inf(
    b: Builder, node: Node, x: Value, *, detect_negative: int = 1, detect_positive: int = 1
) -> Value:
    """Import IsInf, of either sign or of the one that the attributes leave."""
    if detect_negative and detect_positive:
        return b.isinf(x)
    if not (detect_negative or detect_positive):
        return b.logical_and(b.isinf(x), b.literal(np.array(False)))
    sign = compare(b, "less" if detect_negative else "greater", x, 0)
    return b.logical_and(b.isinf(x), sign)


# ---- bits --------------------------------------------------------------------------------------


onnx_table(
    {
        "BitwiseAnd": lambda b, x, y: b.bitwise_and(x, y),
        # (x - (x & y)) + y never wraps
        "BitwiseOr": lambda b, x, y: b.add(b.sub(x, b.bitwise_and(x, y)), y),
    },
    since=18,
)


@onnx_op("BitwiseXor", since=18)
def bitwise_xor(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """x ^ y = (x - (x & y)) + (y - (x & y))."""
    both = b.bitwise_and(x, y)
    return b.add(b.sub(x, both), b.sub(y, both))


@onnx_op("BitwiseNot", since=18)
def bitwise_not(b: Builder, node: Node, x: Value) -> Value:
    """~x = (all bits set) - x."""
    dtype = b.dtype(x)
    ones = np.array(-1).astype(dtype.np) if dtype.is_signed else np.iinfo(dtype.np).max
    return b.sub(b.literal(np.array(ones, dtype.np)), x)


@onnx_op("BitShift", since=11)
def bit_shift(b: Builder, node: Node, x: Value, y: Value, *, direction: str) -> Value:
    """Import BitShift: multiply or divide by 2**n; shifts of the width or more leave only the
    sign.
    """
    if direction not in ("LEFT", "RIGHT"):
        raise ModelError(f"direction expected LEFT or RIGHT, got {direction}")
    dtype = b.dtype(x)
    bits = dtype.bits
    within = compare(b, "less", y, bits)
    if dtype.is_signed:
        within = b.logical_and(within, greater_equal(b, y, 0))
    # a signed type cannot hold the largest power: the last step is separate
    top = bits - 2 if dtype.is_signed else bits - 1
    powers = b.literal(np.array([1 << i for i in range(top + 1)], dtype.np))
    count = convert(b, b.max(b.min(y, top), 0) if dtype.is_signed else b.min(y, top), INT64)
    factor = b.gather(powers, count, axis=0)
    more = compare(b, "greater", y, top) if dtype.is_signed else None
    if direction == "LEFT":
        shifted = b.mul(x, factor)
        if more is not None:
            shifted = b.where(more, b.mul(shifted, 2), shifted)
        return b.where(within, shifted, 0)
    if not dtype.is_signed:
        return b.where(within, b.div(x, factor), 0)
    negative = compare(b, "less", x, 0)
    magnitude = b.where(negative, bitwise_not(b, node, x), x)
    shifted = b.div(magnitude, factor)
    shifted = b.where(more, b.div(shifted, 2), shifted)
    shifted = b.where(within, shifted, 0)
    return b.where(negative, bitwise_not(b, node, shifted), shifted)


# ---- casts -------------------------------------------------------------------------------------


@onnx_op("Cast", since=6)
def cast_op(
    b: Builder, node: Node, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up"
) -> Value:
    """Import Cast."""
    return cast(b, node, x, to, bool(saturate), round_mode)


@onnx_op("Cast", since=1)
def cast_1(b: Builder, node: Node, x: Value, *, to: str) -> Value:
    """Import Cast of opsets 1 to 5, whose type is given by name."""
    if to not in list(TensorProto.DataType.keys()):
        raise ModelError(f"attribute 'to' expected an element type's name, got '{to}'")
    return cast(b, node, x, TensorProto.DataType.Value(to))


@onnx_op("CastLike", since=15)
def cast_like(
    b: Builder,
    node: Node,
    x: Value,
    target: Value,
    *,
    saturate: int = 1,
    round_mode: str = "up",
) -> Value:
    """Import CastLike: a Cast to the type of `target`."""
    to = node.kind(target) or b.dtype(target).onnx
    return cast(b, node, x, to, bool(saturate), round_mode)


@onnx_op("BitCast", since=26)
def bit_cast(b: Builder, node: Node, x: Value, *, to: int) -> Value:
    """Import BitCast: the same bits as another type of the same width."""
    have, want = BY_ONNX.get(node.kind(x)), BY_ONNX.get(to)
    if have is not None or want is not None:
        if have is None or want is None or have.bits != want.bits:
            raise ModelError(
                f"expected types of as many bits, got {have.name if have else b.dtype(x)} and "
                f"{want.name if want else cast_number(to)}"
            )
        if not (have.is_integer and want.is_integer):
            raise NotSupported(f"{have.name} as {want.name}")
        return node.mark(to_narrow(b, x, want), to)
    dtype = cast_number(to)
    if dtype.is_bool or b.dtype(x).is_bool:  # bools are bytes of 0 or 1
        if dtype.size != b.dtype(x).size:
            raise ModelError(f"expected types of as many bytes, got {b.dtype(x)} and {dtype}")
        if dtype.is_bool:
            return convert(
                b, x if b.dtype(x).is_bool else b.bit_cast(x, target_type=dtypes.UINT8), dtype
            )
        byte = convert(b, x, dtypes.UINT8)
        return byte if dtype is dtypes.UINT8 else b.bit_cast(byte, target_type=dtype)
    return b.bit_cast(x, target_type=dtype)

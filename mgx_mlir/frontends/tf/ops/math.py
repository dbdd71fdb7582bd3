"""Elementwise arithmetic, comparison and logic, with numpy's broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core.errors import ModelError, ShapeError
from mgx_mlir.core.shapes import broadcast_dims, show_dims
from mgx_mlir.frontends.helpers import (
    compare,
    concat,
    convert,
    greater_equal,
    known_extent,
    less_equal,
    number,
    slice_,
    wide,
)
from mgx_mlir.frontends.smooth import expm1, log1p, widened
from mgx_mlir.frontends.smooth import softplus as softplus_of
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf",
    "Exp": "exp", "Floor": "floor", "Inv": "recip", "IsInf": "isinf", "IsNan": "isnan",
    "Log": "log", "LogicalNot": "not_", "Neg": "neg", "Reciprocal": "recip", "Relu": "relu",
    "Rint": "nearbyint", "Rsqrt": "rsqrt", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin",
    "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
_BINARY: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "Add": lambda b, x, y: b.add(x, y),
    "AddV2": lambda b, x, y: b.add(x, y),
    "Sub": lambda b, x, y: b.sub(x, y),
    "Mul": lambda b, x, y: b.mul(x, y),
    "Maximum": lambda b, x, y: b.max(x, y),
    "Minimum": lambda b, x, y: b.min(x, y),
    "RealDiv": lambda b, x, y: b.div(x, y),
    "Div": lambda b, x, y: b.div(x, y),  # integers are rounded towards zero
    "Pow": lambda b, x, y: b.pow(x, y),
    "SquaredDifference": lambda b, x, y: b.sqdiff(x, y),
    "LogicalAnd": lambda b, x, y: b.logical_and(x, y),
    "LogicalOr": lambda b, x, y: b.logical_or(x, y),
    "Greater": lambda b, x, y: compare(b, "greater", x, y),
    "GreaterEqual": greater_equal,
    "Less": lambda b, x, y: compare(b, "less", x, y),
    "LessEqual": less_equal,
    "FloorMod": lambda b, x, y: b.mod(x, y),
    "TruncateMod": lambda b, x, y: b.fmod(x, y),
    "Mod": lambda b, x, y: b.fmod(x, y),
    "DivNoNan": lambda b, x, y: unless(b, is_zero(b, y), b.div(x, y)),
    "MulNoNan": lambda b, x, y: unless(b, is_zero(b, y), b.mul(x, y)),
    "Xdivy": lambda b, x, y: unless(b, is_zero(b, x), b.div(x, y)),
    "Xlogy": lambda b, x, y: unless(b, is_zero(b, x), b.mul(x, b.log(y))),
    "Xlog1py": lambda b, x, y: unless(b, is_zero(b, x), b.mul(x, log1p(b, y))),
}


def _register_unary(name: str, op: str) -> None:
    @tf_op(name)
    def unary(b: Builder, node: Node, x: Value) -> Value:
        return getattr(b, op)(x)


def _register_binary(name: str, function: Callable[[Builder, Value, Value], Value]) -> None:
    @tf_op(name)
    def binary(b: Builder, node: Node, x: Value, y: Value) -> Value:
        return function(b, x, y)


def is_zero(b: Builder, x: Value) -> Value:
    """Return whether each element of `x` is 0."""
    return compare(b, "equal", x, 0)


def unless(b: Builder, cond: Value, x: Value) -> Value:
    """Return x, but 0 where the condition holds."""
    return b.where(cond, number(b, 0, x), x)


for _name, _op in _UNARY.items():
    _register_unary(_name, _op)
for _name, _function in _BINARY.items():
    _register_binary(_name, _function)


# ---- functions of one tensor -------------------------------------------------------------------


@tf_op("Log1p")
def log1p_op(b: Builder, node: Node, x: Value) -> Value:
    """Import Log1p, computed in f32 for 16-bit floats."""
    return widened(b, x, lambda v: log1p(b, v))


@tf_op("Expm1")
def expm1_op(b: Builder, node: Node, x: Value) -> Value:
    """Import Expm1, computed in f32 for 16-bit floats."""
    return widened(b, x, lambda v: expm1(b, v))


@tf_op("Square")
def square(b: Builder, node: Node, x: Value) -> Value:
    return b.mul(x, x)


@tf_op("Round")
def round_op(b: Builder, node: Node, x: Value) -> Value:
    """Import Round: halves go to the even neighbour; integers are unchanged."""
    return b.nearbyint(x) if b.dtype(x).is_float else x


@tf_op("IsFinite")
def is_finite(b: Builder, node: Node, x: Value) -> Value:
    """Import IsFinite: neither infinite nor NaN."""
    return b.not_(b.logical_or(b.isinf(x), b.isnan(x)))


@tf_op("Relu6")
def relu6(b: Builder, node: Node, x: Value) -> Value:
    return b.min(b.max(x, 0), 6)


@tf_op("LeakyRelu")
def leaky_relu(b: Builder, node: Node, x: Value, *, alpha: float = 0.2) -> Value:
    return b.leaky_relu(x, alpha=alpha)


@tf_op("Elu")
def elu(b: Builder, node: Node, x: Value) -> Value:
    """Import Elu by expm1, so that small numbers keep their digits."""
    return widened(b, x, lambda v: _elu(b, v))


def _elu(b: Builder, x: Value) -> Value:
    return b.where(compare(b, "less", x, 0), expm1(b, b.min(x, 0)), x)


@tf_op("Selu")
def selu(b: Builder, node: Node, x: Value) -> Value:
    """Import Selu by expm1, so that small numbers keep their digits."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772

    def of(v: Value) -> Value:
        low = b.mul(expm1(b, b.min(v, 0)), scale * alpha)
        return b.where(compare(b, "less", v, 0), low, b.mul(v, scale))

    return widened(b, x, of)


@tf_op("Softplus")
def softplus(b: Builder, node: Node, x: Value) -> Value:
    """Import Softplus, log(1 + exp(x)), which never overflows and keeps its tail."""
    return widened(b, x, lambda v: softplus_of(b, v))


@tf_op("Softsign")
def softsign(b: Builder, node: Node, x: Value) -> Value:
    return b.div(x, b.add(b.abs(x), 1))


# ---- functions of two and more -----------------------------------------------------------------


def floor_div(b: Builder, x: Value, y: Value) -> Value:
    """Import FloorDiv: divide, rounded towards minus infinity."""
    if b.dtype(x).is_float:
        return b.floor(b.div(x, y))
    return b.div(b.sub(x, b.mod(x, y)), y)


@tf_op("FloorDiv")
def floor_div_op(b: Builder, node: Node, x: Value, y: Value) -> Value:
    return floor_div(b, x, y)


@tf_op("TruncateDiv")
def truncate_div(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Import TruncateDiv: divide, rounded towards 0."""
    found = b.div(x, y)
    if not b.dtype(x).is_float:
        return found
    return b.where(compare(b, "less", found, 0), b.ceil(found), b.floor(found))


@tf_op("Atan2")
def atan2(b: Builder, node: Node, y: Value, x: Value) -> Value:
    """Import Atan2: the angle of the point (x, y), by quadrant; for two infinities by their
    signs.
    """
    dtype = b.dtype(x)
    kind = wide(dtype)
    y, x = b.broadcast(convert(b, y, kind), convert(b, x, kind))
    both = b.logical_and(b.isinf(x), b.isinf(y))
    y, x = b.where(both, b.sign(y), y), b.where(both, b.sign(x), x)
    below = _negative(b, y)
    left = _negative(b, x)
    flat = b.atan(b.div(y, x))
    turn = b.where(below, number(b, -math.pi, y), number(b, math.pi, y))
    side = b.where(below, number(b, -math.pi / 2, y), number(b, math.pi / 2, y))
    found = b.where(left, b.add(flat, turn), flat)
    found = b.where(is_zero(b, x), side, found)
    # for y = 0 the quotient may be 0 / 0
    zero = b.where(left, turn, y)
    return convert(b, b.where(is_zero(b, y), zero, found), dtype)


def _negative(b: Builder, x: Value) -> Value:
    """Return whether the sign bit is set, -0 included."""
    below = compare(b, "less", b.recip(x), 0)
    return b.logical_or(compare(b, "less", x, 0), b.logical_and(is_zero(b, x), below))


def _equality(b: Builder, x: Value, y: Value, incompatible: bool) -> Value:
    try:
        broadcast_dims(b.dims(x), b.dims(y))
    except ShapeError:
        if incompatible:
            raise
        return b.literal(np.array(False))
    return compare(b, "equal", x, y)


@tf_op("Equal")
def equal(
    b: Builder, node: Node, x: Value, y: Value, *, incompatible_shape_error: bool = True
) -> Value:
    """Import Equal."""
    return _equality(b, x, y, incompatible_shape_error)


@tf_op("NotEqual")
def not_equal(
    b: Builder, node: Node, x: Value, y: Value, *, incompatible_shape_error: bool = True
) -> Value:
    """Import NotEqual."""
    return b.not_(_equality(b, x, y, incompatible_shape_error))


@tf_op("ApproximateEqual")
def approximate_equal(
    b: Builder, node: Node, x: Value, y: Value, *, tolerance: float = 1e-5
) -> Value:
    """Import ApproximateEqual: |x - y| < tolerance."""
    return compare(b, "less", b.abs(b.sub(x, y)), tolerance)


@tf_op("AddN", "AccumulateNV2")
def add_n(b: Builder, node: Node, *xs: Value, shape: object = None) -> Value:
    """Import AddN and AccumulateNV2: the sum of all inputs."""
    if not xs:
        raise ModelError("expected at least one input")
    out = xs[0]
    for x in xs[1:]:
        out = b.add(out, x)
    return out


@tf_op("ClipByValue")
def clip_by_value(b: Builder, node: Node, x: Value, low: Value, high: Value) -> Value:
    return b.max(b.min(x, high), low)


@tf_op("Cross")
def cross(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Return the cross product of vectors of 3 along the last axis."""
    rank = len(b.dims(x))
    if rank:
        x, y = (known_extent(b, v, rank - 1, 3, "vectors") for v in (x, y))
    if b.dims(x)[-1:] != (3,):
        raise ModelError(f"expected vectors of 3 elements, got dims {show_dims(b.dims(x))}")

    def turned(v: Value, first: int) -> Value:
        axis = rank - 1
        order: Sequence[int] = [first, (first + 1) % 3, (first + 2) % 3]
        return concat(b, [slice_(b, v, [axis], [i], [i + 1]) for i in order], axis)

    return b.sub(b.mul(turned(x, 1), turned(y, 2)), b.mul(turned(x, 2), turned(y, 1)))


# ---- choices -----------------------------------------------------------------------------------


@tf_op("SelectV2")
def select_v2(b: Builder, node: Node, cond: Value, x: Value, y: Value) -> Value:
    """Import SelectV2, which broadcasts."""
    return b.where(cond, x, y)


@tf_op("Select")
def select(b: Builder, node: Node, cond: Value, x: Value, y: Value) -> Value:
    """Import Select by condition; a vector of conditions selects rows."""
    rank, own = len(b.dims(x)), len(b.dims(cond))
    if own == 1 and rank > 1:
        cond = b.unsqueeze(cond, axes=list(range(1, rank)))
    return b.where(cond, x, y)

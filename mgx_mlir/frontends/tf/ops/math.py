"""Elementwise arithmetic with numpy's broadcasting."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.build import Builder
from mgx_mlir.frontends.helpers import Value, compare, greater_equal, less_equal
from mgx_mlir.frontends.tf.registry import tf_op

_UNARY = {
    "Abs": "abs", "Neg": "neg", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Exp": "exp", "Log": "log",
    "Tanh": "tanh", "Sigmoid": "sigmoid", "Relu": "relu", "Erf": "erf", "Floor": "floor",
    "Ceil": "ceil", "Sign": "sign", "Sin": "sin", "Cos": "cos",
}  # fmt: skip
_BINARY = {
    "Add": "add", "AddV2": "add", "Sub": "sub", "Mul": "mul", "Maximum": "max", "Minimum": "min",
    "RealDiv": "div", "SquaredDifference": "sqdiff", "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
}  # fmt: skip


def _register_unary(name: str, op: str) -> None:
    @tf_op(name)
    def unary(b: Builder, node: Any, x: Value) -> Value:
        return getattr(b, op)(x)


def _register_binary(name: str, op: str) -> None:
    @tf_op(name)
    def binary(b: Builder, node: Any, x: Value, y: Value) -> Value:
        return getattr(b, op)(x, y)


for _name, _op in _UNARY.items():
    _register_unary(_name, _op)
for _name, _op in _BINARY.items():
    _register_binary(_name, _op)


@tf_op("Square")
def square(b: Builder, node: Any, x: Value) -> Value:
    return b.mul(x, x)


@tf_op("LogicalNot")
def logical_not(b: Builder, node: Any, x: Value) -> Value:
    return b.not_(x)


@tf_op("Relu6")
def relu6(b: Builder, node: Any, x: Value) -> Value:
    return b.min(b.max(x, 0), 6)


@tf_op("Less")
def less(b: Builder, node: Any, x: Value, y: Value) -> Value:
    return compare(b, "less", x, y)


@tf_op("Greater")
def greater(b: Builder, node: Any, x: Value, y: Value) -> Value:
    return compare(b, "greater", x, y)


@tf_op("LessEqual")
def less_or_equal(b: Builder, node: Any, x: Value, y: Value) -> Value:
    return less_equal(b, x, y)


@tf_op("GreaterEqual")
def greater_or_equal(b: Builder, node: Any, x: Value, y: Value) -> Value:
    return greater_equal(b, x, y)

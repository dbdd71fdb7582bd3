"""Gradient: reverse-mode derivatives of a result by values of the program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import compare, convert, number, reshape, transpose, zeros
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

Values = Sequence[Value]
# function from (builder, operands, result, attributes, derivative by the result) to derivatives by
# the operands
Rule = Callable[[Builder, Values, Value, dict[str, Any], Value], Sequence[Value | None]]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the derivative rule of the ops of these names."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


# ---- pointwise ---------------------------------------------------------------------------------

# derivatives by the operand x, given the result y
_UNARY: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "abs": lambda b, x, y: b.sign(x),
    "cos": lambda b, x, y: b.neg(b.sin(x)),
    "cosh": lambda b, x, y: b.sinh(x),
    "erf": lambda b, x, y: b.mul(b.exp(b.neg(b.mul(x, x))), 2 / math.sqrt(math.pi)),
    "exp": lambda b, x, y: y,
    "log": lambda b, x, y: b.recip(x),
    "neg": lambda b, x, y: number(b, -1, x),
    "recip": lambda b, x, y: b.neg(b.mul(y, y)),
    "relu": lambda b, x, y: convert(b, compare(b, "greater", x, 0), b.dtype(x)),
    "rsqrt": lambda b, x, y: b.mul(b.mul(b.mul(y, y), y), -0.5),
    "sigmoid": lambda b, x, y: b.mul(y, b.sub(number(b, 1, y), y)),
    "sin": lambda b, x, y: b.cos(x),
    "sinh": lambda b, x, y: b.cosh(x),
    "sqrt": lambda b, x, y: b.div(number(b, 0.5, y), y),
    "tan": lambda b, x, y: b.add(b.mul(y, y), 1),
    "tanh": lambda b, x, y: b.sub(number(b, 1, y), b.mul(y, y)),
}


def _unary(name: str) -> Rule:
    return lambda b, ins, out, a, g: [b.mul(g, _UNARY[name](b, ins[0], out))]


RULES.update({name: _unary(name) for name in _UNARY})
RULES["identity"] = lambda b, ins, out, a, g: [g]
RULES["add"] = lambda b, ins, out, a, g: [g, g]
RULES["sub"] = lambda b, ins, out, a, g: [g, b.neg(g)]
RULES["mul"] = lambda b, ins, out, a, g: [b.mul(g, ins[1]), b.mul(g, ins[0])]


@rule("div")
def _div(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    first = b.div(g, ins[1])
    return [first, b.neg(b.mul(first, out))]


@rule("pow")
def _pow(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    x, n = ins
    return [b.mul(g, b.mul(n, b.pow(x, b.sub(n, 1)))), b.mul(g, b.mul(out, b.log(x)))]


@rule("max", "min")
def _extreme(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    """Pass the derivative to the extreme operand; to the first of equal ones."""
    first = compare(b, "equal", ins[0], out)
    return [b.where(first, g, 0), b.where(first, 0, g)]


@rule("where")
def _where(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value | None]:
    return [None, b.where(ins[0], g, 0), b.where(ins[0], 0, g)]


@rule("convert")
def _convert(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    return [convert(b, g, b.dtype(ins[0]))]


# ---- views and sums ----------------------------------------------------------------------------


@rule("reshape", "squeeze", "unsqueeze", "flatten", "contiguous")
def _reshape(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    return [reshape(b, g, list(b.dims(ins[0])))]


@rule("transpose")
def _transpose(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    order = [int(i) for i in a["permutation"]]
    return [transpose(b, g, [order.index(i) for i in range(len(order))])]


@rule("multibroadcast", "broadcast", "scalar")
def _broadcast(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    """Return the sum over the copies."""
    have, want = b.dims(ins[0]), b.dims(out)
    first = int(a.get("axis", len(want) - len(have)))
    axes = [
        i for i in range(len(want))
        if not first <= i < first + len(have) or have[i - first] != want[i]
    ]  # fmt: skip
    total = b.reduce_sum(g, axes=axes) if axes else g
    return [reshape(b, total, list(have))]


@rule("slice")
def _slice(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    dims, cut = b.dims(ins[0]), b.dims(out)
    begin = [0] * len(dims)
    for axis, start in zip(a["axes"], a["starts"], strict=True):
        n = dims[int(axis)]
        begin[int(axis)] = min(max(int(start) + n * (start < 0), 0), n)
    end = [n - p - c for n, p, c in zip(dims, begin, cut, strict=True)]
    return [b.pad(g, pads=begin + end)]


@rule("concat")
def _concat(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    axis = int(a["axis"]) % len(b.dims(out))
    parts, start = [], 0
    for x in ins:
        stop = start + b.dims(x)[axis]
        parts.append(b.slice(g, axes=[axis], starts=[start], ends=[stop]))
        start = stop
    return parts


@rule("reduce_sum")
def _sum(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    return [b.multibroadcast(g, list(b.dims(ins[0])))]


@rule("reduce_mean")
def _mean(
    b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value
) -> Sequence[Value | None]:
    count = math.prod(b.dims(ins[0])) / max(math.prod(b.dims(out)), 1)
    return _sum(b, ins, out, a, b.div(g, count))


@rule("softmax")
def _softmax(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    scaled = b.mul(g, out)
    total = b.reduce_sum(scaled, axes=[int(a["axis"]) % len(b.dims(out))])
    return [b.sub(scaled, b.mul(out, total))]


@rule("dot")
def _dot(b: Builder, ins: Values, out: Value, a: dict[str, Any], g: Value) -> list[Value]:
    order = list(range(len(b.dims(g))))
    order[-2:] = order[:-3:-1]
    x, y = (transpose(b, v, order) for v in ins)
    return [b.dot(g, y), b.dot(x, g)]


# ---- the operator ------------------------------------------------------------------------------


def _between(sources: Sequence[Value], fixed: Sequence[Value], y: Value) -> Iterator[ir.Operation]:
    """Return the ops on paths from the sources to y, the last one first."""
    owner = y.owner
    if isinstance(owner, ir.Block):
        return
    reached, ops = set(sources), []
    for op in owner.operation.block.operations:
        results = list(op.operation.results)
        ends = any(r in sources or r in fixed for r in results)
        if not ends and any(v in reached for v in op.operation.operands):
            reached.update(results)
            ops.append(op.operation)
        if y in results:
            break
    yield from reversed(ops)


@onnx_op("Gradient", domain="ai.onnx.preview.training", since=1)
def gradient(
    b: Builder, node: Node, *inputs: Value, xs: Sequence[str], y: str, zs: Sequence[str] = ()
) -> Outputs:
    """Return the derivatives of the sum of `y` by `xs`; `xs` and `zs` are treated as
    independent.
    """
    names = [*xs, *zs]
    if len(inputs) != len(names):
        raise ModelError(f"expected {len(names)} inputs, those of xs and zs, got {len(inputs)}")
    if any(node.value(n) != v for n, v in zip(names, inputs, strict=True)):
        raise NotSupported("a derivative at values other than the graph's own")
    result = node.value(y)
    if not isinstance(result, ir.Value):
        raise ModelError(f"expected a tensor '{y}'")
    if any(DYN in b.dims(v) or not b.dtype(v).is_float for v in (*inputs[: len(xs)], result)):
        raise NotSupported("a derivative by or of values that have dynamic dims, or are no floats")
    sources = list(inputs[: len(xs)])
    limits.filled(b.dims(result))
    ones = np.broadcast_to(np.ones((), b.dtype(result).np), b.dims(result))
    found: dict[Value, Value] = {result: b.literal(ones)}
    for op in _between(sources, list(inputs[len(xs) :]), result):
        out = op.results[0]
        if out not in found:
            continue  # y does not depend on it
        name = mnemonic(op)
        if name not in RULES or any(DYN in TensorType.of(v).dims for v in (*op.operands, out)):
            raise NotSupported(f"a derivative of '{name}'" + " of dynamic dims" * (name in RULES))
        operands = list(op.operands)
        for v, part in zip(
            operands, RULES[name](b, operands, out, attributes_of(op), found[out]), strict=True
        ):
            if part is not None and b.dtype(v).is_float:
                found[v] = part if v not in found else b.add(found[v], part)
    return tuple(found.get(v, zeros(b, b.dims(v), b.dtype(v))) for v in sources)

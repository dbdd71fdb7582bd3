"""One step of an optimizer (ai.onnx.preview.training): Adagrad, Adam, Momentum."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import compare, convert, number
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

TRAINING = "ai.onnx.preview.training"
Step = Callable[..., tuple[Value, ...]]


def _each(values: Sequence[Value], kinds: int, step: Step) -> list[Value]:
    """Apply `step` to each tensor with its gradient and states; group the results by kind."""
    if not values or len(values) % kinds:
        raise ModelError(f"expected {kinds} tensors for each optimized one, got {len(values)}")
    n = len(values) // kinds
    rows = [step(*values[i::n]) for i in range(n)]
    return [row[k] for k in range(len(rows[0])) for row in rows]


def _regularized(b: Builder, x: Value, g: Value, norm: float) -> Value:
    return b.add(b.mul(x, norm), g) if norm else g


@onnx_op("Adagrad", since=1, domain=TRAINING)
def adagrad(
    b: Builder,
    node: Node,
    r: Value,
    t: Value,
    *values: Value,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Outputs:
    """Import Adagrad: one step of the optimizer for each group of tensors."""
    rate = b.div(r, b.add(b.mul(convert(b, t, b.dtype(r)), decay_factor), 1))

    def step(x: Value, g: Value, h: Value) -> tuple[Value, ...]:
        g = _regularized(b, x, g, norm_coefficient)
        squares = b.add(h, b.mul(g, g))
        adaptive = b.add(b.sqrt(squares), epsilon)
        factor = convert(b, rate, b.dtype(x))
        return b.sub(x, b.div(b.mul(factor, g), adaptive)), squares

    return _each(values, 3, step)


@onnx_op("Adam", since=1, domain=TRAINING)
def adam(
    b: Builder,
    node: Node,
    r: Value,
    t: Value,
    *values: Value,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Outputs:
    """Import Adam: one step of the optimizer for each group of tensors."""
    count = convert(b, t, b.dtype(r))
    started = compare(b, "greater", t, 0)
    powers = [b.sub(number(b, 1, r), b.pow(number(b, v, r), count)) for v in (alpha, beta)]
    safe = b.where(started, powers[0], number(b, 1, r))
    rate = b.where(started, b.div(b.mul(r, b.sqrt(powers[1])), safe), r)

    def step(x: Value, g: Value, v: Value, h: Value) -> tuple[Value, ...]:
        g = _regularized(b, x, g, norm_coefficient)
        mean = b.add(b.mul(v, alpha), b.mul(g, 1 - alpha))
        squares = b.add(b.mul(h, beta), b.mul(b.mul(g, g), 1 - beta))
        move = b.div(mean, b.add(b.sqrt(squares), epsilon))
        new = b.sub(x, b.mul(convert(b, rate, b.dtype(x)), move))
        if norm_coefficient_post:
            new = b.mul(new, 1 - norm_coefficient_post)
        return new, mean, squares

    return _each(values, 4, step)


@onnx_op("Momentum", since=1, domain=TRAINING)
def momentum(
    b: Builder,
    node: Node,
    r: Value,
    t: Value,
    *values: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> Outputs:
    """Import Momentum: one step of the optimizer, standard or Nesterov's."""
    if mode not in ("standard", "nesterov"):
        raise ModelError(f"attribute 'mode' expected standard or nesterov, got {mode}")
    first = b.not_(compare(b, "greater", t, 0))

    def step(x: Value, g: Value, v: Value) -> tuple[Value, ...]:
        g = _regularized(b, x, g, norm_coefficient)
        factor = b.where(first, number(b, 1, x), number(b, beta, x))
        new = b.add(b.mul(v, alpha), b.mul(factor, g))
        move = b.add(g, b.mul(new, alpha)) if mode == "nesterov" else new
        return b.sub(x, b.mul(convert(b, r, b.dtype(x)), move)), new

    return _each(values, 3, step)

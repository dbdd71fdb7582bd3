"""Trains small nets in numpy: values that know their gradients, and Adam."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

Array = np.ndarray


class Value:
    """An array, and how the gradient of a loss comes back through what made it."""

    def __init__(
        self,
        data: Array,
        sources: Sequence[Value] = (),
        back: Callable[[Array], None] | None = None,
    ) -> None:
        self.data = data
        self.grad: Array | None = None
        self._sources = sources
        self._back = back

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def take(self, grad: Array) -> None:
        """Add a gradient, summed over the dims along which the value was repeated."""
        extra = grad.ndim - self.data.ndim
        grad = grad.sum(tuple(range(extra))) if extra else grad
        repeated = tuple(i for i, d in enumerate(self.data.shape) if d == 1 != grad.shape[i])
        grad = grad.sum(repeated, keepdims=True) if repeated else grad
        self.grad = grad if self.grad is None else self.grad + grad

    def backward(self, grad: Array) -> None:
        """Give a gradient to this value, and with it to all that it comes from."""
        order: list[Value] = []
        seen: set[int] = set()

        def visit(v: Value) -> None:
            if id(v) not in seen:
                seen.add(id(v))
                for source in v._sources:
                    visit(source)
                order.append(v)

        visit(self)
        self.grad = grad
        for v in reversed(order):
            if v._back is not None and v.grad is not None:
                v._back(v.grad)

    def __add__(self, other: Value) -> Value:
        def back(g: Array) -> None:
            self.take(g)
            other.take(g)

        return Value(self.data + other.data, (self, other), back)

    def __mul__(self, other: Value) -> Value:
        def back(g: Array) -> None:
            self.take(g * other.data)
            other.take(g * self.data)

        return Value(self.data * other.data, (self, other), back)

    def __matmul__(self, other: Value) -> Value:
        def back(g: Array) -> None:
            self.take(g @ other.data.swapaxes(-1, -2))
            if other.data.ndim == 2:  # one matmul of all rows, in place of one for each batch
                rows = self.data.reshape(-1, self.shape[-1])
                other.take(rows.T @ g.reshape(-1, g.shape[-1]))
            else:
                other.take(self.data.swapaxes(-1, -2) @ g)

        return Value(self.data @ other.data, (self, other), back)

    def reshape(self, *dims: int) -> Value:
        return Value(
            self.data.reshape(dims), (self,), lambda g: self.take(g.reshape(self.data.shape))
        )

    def transpose(self, *perm: int) -> Value:
        back = tuple(np.argsort(perm))
        return Value(self.data.transpose(perm), (self,), lambda g: self.take(g.transpose(back)))

    def mean(self, axes: tuple[int, ...]) -> Value:
        count = np.prod([self.data.shape[a] for a in axes])

        def back(g: Array) -> None:
            self.take(np.broadcast_to(np.expand_dims(g, axes) / count, self.data.shape))

        return Value(self.data.mean(axes), (self,), back)

    def relu(self) -> Value:
        on = self.data > 0
        return Value(self.data * on, (self,), lambda g: self.take(g * on))

    def gelu(self) -> Value:
        """Gelu by tanh, as ONNX's Gelu with approximate="tanh"."""
        x, c = self.data, np.float32(np.sqrt(2 / np.pi))
        t = np.tanh(c * (x + 0.044715 * x**3))
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * c * (1 + 3 * 0.044715 * x**2)
        return Value(0.5 * x * (1 + t), (self,), lambda g: self.take(g * slope))

    def softmax(self) -> Value:
        p = softmax(self.data)

        def back(g: Array) -> None:
            self.take(p * (g - (g * p).sum(-1, keepdims=True)))

        return Value(p, (self,), back)

    def normalised(self) -> Value:
        """Each row of the last axis with mean 0 and variance 1."""
        centred = self.data - self.data.mean(-1, keepdims=True)
        inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        y = centred * inverse

        def back(g: Array) -> None:
            less = g.mean(-1, keepdims=True) + y * (g * y).mean(-1, keepdims=True)
            self.take((g - less) * inverse)

        return Value(y, (self,), back)

    def patches(self, size: int, stride: int) -> Value:
        """(n, h, w, c) -> (n, h', w', size*size, c): what a padded window sees at each place."""
        pad, (n, h, w, c) = size // 2, self.data.shape
        rows, columns = -(-h // stride), -(-w // stride)
        padded = np.pad(self.data, ((0, 0), (pad, pad), (pad, pad), (0, 0)))

        def window(a: Array, k: int) -> Array:
            i, j = divmod(k, size)
            return a[:, i : i + h : stride, j : j + w : stride]

        out = np.empty((n, rows, columns, size * size, c), np.float32)
        for k in range(size * size):
            out[..., k, :] = window(padded, k)

        def back(g: Array) -> None:
            whole = np.zeros_like(padded)
            for k in range(size * size):
                window(whole, k)[...] += g[..., k, :]
            self.take(whole[:, pad : pad + h, pad : pad + w])

        return Value(out, (self,), back)


def softmax(x: Array) -> Array:
    """Return the softmax over the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def train(
    weights: dict[str, Value],
    net: Callable[[Value], Value],
    batches: Iterable[tuple[Array, Array]],
    rates: Sequence[float],
) -> None:
    """Fit a classifier by Adam: one step of cross entropy for each batch and rate."""
    first: dict[str, Array] = {}  # means of gradients and of their squares, by weight
    second: dict[str, Array] = {}
    for step, ((x, labels), rate) in enumerate(zip(batches, rates, strict=False), 1):
        for v in weights.values():
            v.grad = None
        out = net(Value(x))
        wrong = softmax(out.data)
        wrong[np.arange(len(labels)), labels] -= 1
        out.backward((wrong / np.float32(len(labels))).astype(np.float32))
        for k, v in weights.items():
            if v.grad is None:
                continue
            first[k] = 0.9 * first.get(k, np.zeros_like(v.grad)) + 0.1 * v.grad
            second[k] = 0.99 * second.get(k, np.zeros_like(v.grad)) + 0.01 * v.grad**2
            mean, square = first[k] / (1 - 0.9**step), second[k] / (1 - 0.99**step)
            v.data = (v.data - rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)

"""Two classifiers that are trained here in a minute each, as ONNX models, with their data.

A convolution net (dense, depthwise, residual) reads scikit-learn's digits, shifted and with noise;
a transformer reads synthetic spoken digits: words of formants that glide, at drawn pitches, speeds
and loudness, as 32 frames of 24 bands. Of the transformer's layer norms a few channels are 30 times
as large as the others, and the weights behind them as much smaller: the same function, with the
outlier channels that large language models have.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.learn import Array, Value, train
from zoo.made import Graph

CLASSES = 10
_OUTLIERS, _FACTOR = 3, 30.0


@dataclass
class Task:
    """A trained model whose batch is dynamic, and what it is calibrated and judged on."""

    name: str
    model: onnx.ModelProto
    calibration: Array
    held: Array
    labels: Array


class _Weights(dict[str, Value]):
    """Weights by name, drawn where they are first asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)

    def normal(self, name: str, *dims: int, fan_in: int) -> Value:
        if name not in self:
            drawn = self._rng.standard_normal(dims) * math.sqrt(2 / fan_in)
            self[name] = Value(drawn.astype(np.float32))
        return self[name]

    def full(self, name: str, size: int, number: float = 0.0) -> Value:
        if name not in self:
            self[name] = Value(np.full(size, number, np.float32))
        return self[name]


def _rates(steps: int, top: float) -> list[float]:
    """Rise for a tenth of the steps, then fall by a cosine."""
    warm = steps // 10
    up = [top * (i + 1) / warm for i in range(warm)]
    down = np.linspace(0, math.pi, steps - warm)
    return up + [top * (0.51 + 0.49 * math.cos(a)) for a in down]


# ---- digits --------------------------------------------------------------------------------------


def _digits() -> tuple[Array, Array]:
    """Read scikit-learn's file: the package itself, which wants scipy, is not imported."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise SystemExit("pip install scikit-learn --no-deps --target build/tasks")
    rows = np.loadtxt(Path(package.origin).parent / "datasets/data/digits.csv.gz", delimiter=",")
    images = (rows[:, :-1] / 8 - 1).reshape(-1, 8, 8, 1).astype(np.float32)
    return images, rows[:, -1].astype(np.int64)


def _noisy(rng: np.random.Generator, images: Array) -> Array:
    """Shift images by up to one pixel, scale their contrast, and add noise."""
    out = np.full_like(images, -1)
    for i, image in enumerate(images):
        dy, dx = rng.integers(-1, 2, 2)
        padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), constant_values=-1)
        out[i] = padded[1 + dy : 9 + dy, 1 + dx : 9 + dx]
    contrast = rng.uniform(0.5, 1.2, (len(images), 1, 1, 1))
    return (contrast * out + 0.35 * rng.standard_normal(out.shape)).astype(np.float32)


_CONVS = (  # name, kernel, stride, channels in and out, depthwise
    ("stem", 3, 1, 1, 24, False),
    ("wide", 3, 2, 24, 48, False),
    ("deep", 3, 1, 48, 48, True),
    ("mix", 1, 1, 48, 48, False),
    ("last", 3, 2, 48, 96, False),
)


def _conv(w: _Weights, x: Value, at: int) -> Value:
    name, k, stride, cin, cout, depthwise = _CONVS[at]
    seen = x.patches(k, stride)
    n, rows, columns = seen.shape[:3]
    bias = w.full(f"{name}_b", cout)
    if depthwise:
        scaled = seen * w.normal(name, k * k, cin, fan_in=k * k)
        ones = Value(np.ones((1, k * k), np.float32))
        return (ones @ scaled).reshape(n, rows, columns, cin) + bias
    flat = seen.reshape(n * rows * columns, k * k * cin)
    y = flat @ w.normal(name, k * k * cin, cout, fan_in=k * k * cin)
    return y.reshape(n, rows, columns, cout) + bias


def _conv_net(w: _Weights) -> Callable[[Value], Value]:
    def net(x: Value) -> Value:
        y = _conv(w, _conv(w, x, 0).relu(), 1).relu()
        y = (y + _conv(w, _conv(w, y, 2).relu(), 3)).relu()
        y = _conv(w, y, 4).relu().mean((1, 2))
        return y @ w.normal("head", 96, CLASSES, fan_in=96) + w.full("head_b", CLASSES)

    return net


def _conv_model(w: _Weights) -> onnx.ModelProto:
    g = Graph(0)

    def conv(x: str, at: int) -> str:
        name, k, stride, cin, cout, depthwise = _CONVS[at]
        weights = w[name].data.reshape(k, k, 1 if depthwise else cin, cout).transpose(3, 2, 0, 1)
        return g.op(
            "Conv", x, g.const(weights), g.const(w[f"{name}_b"].data), kernel_shape=[k, k],
            strides=[stride] * 2, pads=[k // 2] * 4, group=cin if depthwise else 1,
        )  # fmt: skip

    y = g.op("Relu", conv(g.input("x", ["n", 1, 8, 8]), 0))
    y = g.op("Relu", conv(y, 1))
    y = g.op("Relu", g.op("Add", y, conv(g.op("Relu", conv(y, 2)), 3)))
    y = g.op("Flatten", g.op("GlobalAveragePool", g.op("Relu", conv(y, 4))))
    y = g.op("Add", g.op("MatMul", y, g.const(w["head"].data)), g.const(w["head_b"].data))
    g.output(y, "y", ["n", CLASSES])
    return g.model()


def digits(steps: int = 1500) -> Task:
    """Train the convolution net: 1,000 images, judged on 8 noisy forms of each of the others."""
    images, labels = _digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(images))
    images, labels = images[order], labels[order]

    def batches() -> Iterator[tuple[Array, Array]]:
        while True:
            at = rng.integers(0, 1000, 64)
            yield _noisy(rng, images[at]), labels[at]

    w = _Weights(1)
    train(w, _conv_net(w), batches(), _rates(steps, 3e-3))
    held = np.concatenate([_noisy(rng, images[1000:]) for _ in range(8)])
    seen = _noisy(rng, images[:512])
    return Task(
        "digits", _conv_model(w), seen.transpose(0, 3, 1, 2), held.transpose(0, 3, 1, 2),
        np.tile(labels[1000:], 8),
    )  # fmt: skip


# ---- words ---------------------------------------------------------------------------------------

FRAMES, BANDS, _WIDTH, _HEADS, _LAYERS, _INNER = 32, 24, 64, 4, 2, 128


def words(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Draw spoken digits: three formants that glide from vowel to vowel, as energies of bands.

    The vowels of each digit are fixed; pitch, speed, start, loudness and noise are drawn.
    """
    fixed = np.random.default_rng(42)
    vowels = fixed.uniform(2, BANDS - 3, (CLASSES, 3, 3))  # formants of a digit, over time
    labels = rng.integers(0, CLASSES, count)
    length = rng.uniform(14, 28, (count, 1))
    start = rng.uniform(0, 1, (count, 1)) * (FRAMES - length)
    time = (np.arange(FRAMES) - start) / length * 2  # 0 .. 2 while the word lasts
    on = (time >= 0) & (time <= 2)
    at = np.clip(time, 0, 2)
    low = np.minimum(at.astype(int), 1)
    share = (at - low)[..., None]
    spoken = vowels[labels]
    rows = np.arange(count)[:, None]
    centre = (1 - share) * spoken[rows, low] + share * spoken[rows, low + 1]
    centre = centre * rng.uniform(0.88, 1.12, (count, 1, 1)) + rng.normal(0, 0.5, (count, 1, 3))
    apart = np.arange(BANDS) - centre[..., None]
    energy = (np.exp(-(apart**2) / 3) * on[..., None, None]).sum(2)
    loud = rng.uniform(0.6, 1.6, (count, 1, 1))
    heard = loud * energy + 0.75 * rng.standard_normal(energy.shape)
    return heard.astype(np.float32), labels


def _transformer(w: _Weights) -> Callable[[Value], Value]:
    def dense(x: Value, name: str, cin: int, cout: int) -> Value:
        return x @ w.normal(name, cin, cout, fan_in=2 * cin) + w.full(f"{name}_b", cout)

    def norm(x: Value, name: str) -> Value:
        return x.normalised() * w.full(f"{name}_g", _WIDTH, 1.0) + w.full(f"{name}_b", _WIDTH)

    def attention(x: Value, name: str) -> Value:
        n, size = x.shape[0], _WIDTH // _HEADS
        q, k, v = (
            dense(x, f"{name}_{part}", _WIDTH, _WIDTH).reshape(n, FRAMES, _HEADS, size)
            for part in "qkv"
        )
        scale = Value(np.array([1 / math.sqrt(size)], np.float32))
        scores = (q.transpose(0, 2, 1, 3) * scale) @ k.transpose(0, 2, 3, 1)
        y = (scores.softmax() @ v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        return dense(y.reshape(n, FRAMES, _WIDTH), f"{name}_o", _WIDTH, _WIDTH)

    def net(x: Value) -> Value:
        places = w.normal("places", FRAMES, _WIDTH, fan_in=50)
        y = dense(x, "in", BANDS, _WIDTH) + places
        for i in range(_LAYERS):
            y = y + attention(norm(y, f"{i}_n1"), f"{i}")
            z = dense(norm(y, f"{i}_n2"), f"{i}_up", _WIDTH, _INNER).gelu()
            y = y + dense(z, f"{i}_down", _INNER, _WIDTH)
        return dense(norm(y, "n").mean((1,)), "head", _WIDTH, CLASSES)

    return net


def _with_outliers(w: _Weights) -> dict[str, Array]:
    """Return the weights with a few channels of each layer norm larger: the function stays."""
    rng = np.random.default_rng(3)
    made = {k: v.data.copy() for k, v in w.items()}
    for i in range(_LAYERS):
        for norm, users in ((f"{i}_n1", [f"{i}_{p}" for p in "qkv"]), (f"{i}_n2", [f"{i}_up"])):
            factors = np.ones(_WIDTH, np.float32)
            factors[rng.choice(_WIDTH, _OUTLIERS, replace=False)] = _FACTOR
            made[f"{norm}_g"] *= factors
            made[f"{norm}_b"] *= factors
            for name in users:
                made[name] /= factors[:, None]
    return made


def _transformer_model(w: dict[str, Array]) -> onnx.ModelProto:
    g = Graph(0)

    def dense(x: str, name: str) -> str:
        return g.op("Add", g.op("MatMul", x, g.const(w[name])), g.const(w[f"{name}_b"]))

    def norm(x: str, name: str) -> str:
        numbers = g.const(w[f"{name}_g"]), g.const(w[f"{name}_b"])
        return g.op("LayerNormalization", x, *numbers, axis=-1, epsilon=1e-5)

    def attention(x: str, name: str) -> str:
        size = _WIDTH // _HEADS
        dims = (0, FRAMES, _HEADS, size)
        q, v = (g.heads(dense(x, f"{name}_{p}"), dims) for p in "qv")
        k = g.heads(dense(x, f"{name}_k"), dims, (0, 2, 3, 1))
        scores = g.op("MatMul", g.op("Mul", q, g.const(1 / math.sqrt(size))), k)
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        y = g.op("Transpose", y, perm=[0, 2, 1, 3])
        return dense(g.op("Reshape", y, g.ints(0, FRAMES, _WIDTH)), f"{name}_o")

    y = g.op("Add", dense(g.input("x", ["n", FRAMES, BANDS]), "in"), g.const(w["places"]))
    for i in range(_LAYERS):
        y = g.op("Add", y, attention(norm(y, f"{i}_n1"), str(i)))
        z = g.op("Gelu", dense(norm(y, f"{i}_n2"), f"{i}_up"), approximate="tanh")
        y = g.op("Add", y, dense(z, f"{i}_down"))
    y = g.op("ReduceMean", norm(y, "n"), g.ints(1), keepdims=0)
    g.output(dense(y, "head"), "y", ["n", CLASSES])
    return g.model(20)


def speech(steps: int = 500) -> Task:
    """Train the transformer on drawn words, each seen once; judged on 6,000 others."""
    rng = np.random.default_rng(7)

    def batches() -> Iterator[tuple[Array, Array]]:
        while True:
            yield words(rng, 64)

    w = _Weights(2)
    train(w, _transformer(w), batches(), _rates(steps, 2e-3))
    seen, _ = words(rng, 512)
    held, labels = words(rng, 6000)
    return Task("speech", _transformer_model(_with_outliers(w)), seen, held, labels)


TASKS = {"digits": digits, "speech": speech}

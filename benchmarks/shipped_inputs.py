"""A shipped model as the bench holds it, and inputs of the kinds that they were made for.

A dim of an input is a number, or the name of a dynamic one; `sizes` gives the names values. Inputs
are made with numpy alone: a voice that glides and pauses, dark strokes on light paper, letters,
rows of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Dims = tuple[int, ...]
Draw = Callable[[np.random.Generator, Dims], np.ndarray]
RATE = 16000  # samples of sound a second


@dataclass(frozen=True)
class Input:
    """One input: how it is made, and its dims, numbers or names of dynamic ones."""

    draw: Draw
    dims: Sequence[int | str] = ()

    def array(self, rng: np.random.Generator, size: Mapping[str, int]) -> np.ndarray:
        return self.draw(rng, tuple(d if isinstance(d, int) else size[d] for d in self.dims))


@dataclass(frozen=True)
class Shipped:
    """Models of a package that take the same inputs, and the sizes that each is run at."""

    package: str
    files: Sequence[str]
    inputs: Mapping[str, Input]
    sizes: Sequence[Mapping[str, int]]

    def arrays(self, size: Mapping[str, int]) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(7)
        return {name: i.array(rng, size) for name, i in self.inputs.items()}


def sound(*dims: int | str) -> Input:
    """A voice: harmonics of a gliding pitch, in syllables, with a little noise."""

    def draw(rng: np.random.Generator, shape: Dims) -> np.ndarray:
        seconds = np.arange(int(np.prod(shape))) / RATE
        pitch = 130 + 40 * np.sin(2 * np.pi * 0.7 * seconds)
        phase = 2 * np.pi * np.cumsum(pitch) / RATE
        voice = sum(np.sin(k * phase) / k**1.2 for k in range(1, 20))
        syllables = np.clip(np.sin(2 * np.pi * 2.3 * seconds + 0.5), 0, None) ** 0.5
        noisy = 0.1 * voice * syllables + 0.003 * rng.standard_normal(seconds.size)
        return noisy.astype(np.float32).reshape(shape)

    return Input(draw, dims)


def smooth(low: float, high: float, *dims: int | str) -> Input:
    """Values that change slowly along the last two axes, as spectrograms and photographs do."""

    def draw(rng: np.random.Generator, shape: Dims) -> np.ndarray:
        *outer, height, width = shape
        y, x = np.mgrid[:height, :width] / 17.0
        total = np.zeros(shape)
        for _ in range(6):
            a, b, c = rng.uniform(-3, 3, (3, *outer, 1, 1))
            total += np.sin(a * y + b * x + c)
        total += 0.3 * rng.standard_normal(shape)
        return (low + (high - low) / (1 + np.exp(-total))).astype(np.float32)

    return Input(draw, dims)


def page(*dims: int | str) -> Input:
    """Lines of dark strokes on light paper, in [-1, 1], as text on an image."""

    def draw(rng: np.random.Generator, shape: Dims) -> np.ndarray:
        *outer, height, width = shape
        paper = np.full((height, width), 0.9)
        pitch = min(32, height)
        for top in range(pitch // 4, height - pitch // 2 + 1, pitch):
            for left in range(4, width - 12, 12):
                kind, tall = rng.integers(0, 4), pitch // 2
                if kind != 0:
                    paper[top : top + tall, left : left + 2] = -0.8
                if kind != 1:
                    paper[top : top + 2, left : left + 8] = -0.8
                if kind > 1:
                    paper[top + tall // 2 : top + tall // 2 + 2, left : left + 8] = -0.8
        noise = 0.02 * rng.standard_normal(shape)
        return (np.broadcast_to(paper, (*outer, height, width)) + noise).astype(np.float32)

    return Input(draw, dims)


def ids(below: int, *dims: int | str, dtype: type = np.int64) -> Input:
    """Tokens, letters or bytes: small numbers are more frequent."""

    def draw(rng: np.random.Generator, shape: Dims) -> np.ndarray:
        return (1 + (below - 1) * rng.random(shape) ** 2).astype(dtype)

    return Input(draw, dims)


def words(*choices: str, dims: Sequence[int | str]) -> Input:
    def draw(rng: np.random.Generator, shape: Dims) -> np.ndarray:
        return np.array(choices, object)[rng.integers(0, len(choices), shape)]

    return Input(draw, dims)


def numbers(below: int, *dims: int | str, dtype: type = np.int64) -> Input:
    """Numbers that are all as frequent, 0 among them."""
    return Input(lambda rng, shape: rng.integers(0, below, shape).astype(dtype), dims)


def given(value: float, *dims: int | str, dtype: type = np.float32) -> Input:
    return Input(lambda _, shape: np.full(shape, value, dtype), dims)


def rising(low: float, high: float | None, *dims: int | str, dtype: type = np.float32) -> Input:
    """Numbers that grow evenly, by one where no largest is given."""

    def draw(_: np.random.Generator, shape: Dims) -> np.ndarray:
        count = int(np.prod(shape))
        top = low + count - 1 if high is None else high
        return np.linspace(low, top, count).astype(dtype).reshape(shape)

    return Input(draw, dims)


def one_hot(kinds: int, *dims: int | str) -> Input:
    """Letters, each a row of zeros with a one."""
    return Input(lambda rng, s: np.eye(kinds, dtype=np.float32)[rng.integers(0, kinds, s)], dims)


def normal(*dims: int | str) -> Input:
    return Input(lambda rng, shape: rng.standard_normal(shape).astype(np.float32), dims)


def features(count: int) -> dict[str, Input]:
    """Columns of a table in f64, as converters of boosted trees name them."""

    def draw(rng: np.random.Generator, shape: Dims) -> np.ndarray:
        return np.round(rng.standard_normal(shape) * 20, 1)

    return {"X": Input(draw, ("b", count))}


def over(name: str, *values: int) -> list[dict[str, int]]:
    return [{name: value} for value in values]


BATCHES = over("b", 1, 4, 2)
PAGES = [{"b": 1, "h": 320, "w": 480}, {"b": 1, "h": 192, "w": 256}, {"b": 2, "h": 96, "w": 160}]
PAGE_LINES = [
    {"b": 1, "w": 320},
    {"b": 2, "w": 200},
    {"b": 1, "w": 480},
]  # cut out of pages, 48 high
WORDS = [{"b": 1, "n": 40}, {"b": 3, "n": 25}, {"b": 1, "n": 90}]
CALLS = [{"b": 1, "n": 100}, {"b": 2, "n": 37}, {"b": 1, "n": 250}]
LINES = over("n", 50, 13, 120)
POINTS = over("b", 1, 100, 3000)

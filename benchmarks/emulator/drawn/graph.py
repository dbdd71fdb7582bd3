"""The form of a drawn graph: a net whose sizes, types and options come from its seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import ml_dtypes
import numpy as np
from onnx import ModelProto

from benchmarks.emulator.held_out.net import Net, Oracle
from tests.emulator.oracle import LIMITS, narrowed

T = TypeVar("T")
Wanted = Callable[[dict[str, np.ndarray]], list[np.ndarray]]
ODD = (3, 5, 7, 9, 11, 13, 17, 19, 21, 29, 33)  # extents that no tile divides
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


class Drawn(Net):
    """A net that draws its own sizes; `second` are those of another call of dynamic dims."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng([seed, 0])
        super().__init__({}, is_dynamic=self.coin())
        self.rng = np.random.default_rng([seed, 1])
        self.second: dict[str, int] = {}
        self.type = "f32"
        self.oracle: Oracle = "default"
        self.limit = 0.0  # limit of the error by norm; 0: the type's
        self.wanted: Wanted | None = None  # in place of onnxruntime's values

    def coin(self, share: float = 0.5) -> bool:
        return bool(self.chance.random() < share)

    def pick(self, *choices: T) -> T:
        return choices[int(self.chance.integers(len(choices)))]

    def number(self, low: int, high: int) -> int:
        """Return an integer drawn from [low, high]."""
        return int(self.chance.integers(low, high + 1))

    def odd(self, most: int = 33) -> int:
        return self.pick(*(n for n in ODD if n <= most))

    def fixed(self) -> None:
        """Let no dim be dynamic."""
        self.is_dynamic = False

    def narrow(self, *types: str) -> None:
        """Draw the type of its floats."""
        self.type = self.pick(*(types or ("f32", "f16", "bf16")))
        if self.type != "f32":
            self.oracle = "wide"

    def extent(self, name: str, *choices: int) -> int | str:
        """A named extent, of these; the second call draws its own."""
        self.sizes[name], self.second[name] = self.pick(*choices), self.pick(*choices)
        return self.size(name)

    def finished(self) -> ModelProto:
        """The model in its type."""
        made = self.made()
        return made if self.type == "f32" else narrowed(made, TYPES[self.type])

    def calls(self, model: ModelProto) -> list[dict[str, np.ndarray]]:
        """Inputs of a call, and of one of other sizes where there are dynamic dims."""
        found = [self.arrays(0)]
        if self.is_dynamic and self.sizes:
            found.append(self.arrays(1, **self.second))
        to = TYPES[self.type]
        return [
            {n: a.astype(to) if a.dtype == np.float32 else a for n, a in call.items()}
            for call in found
        ]

    def error_limit(self) -> float:
        return self.limit or LIMITS[self.type]


KINDS: dict[str, Callable[[Drawn], None]] = {}


def kind(build: Callable[[Drawn], None]) -> Callable[[Drawn], None]:
    """Register a kind of graph under its function's name."""
    KINDS[build.__name__] = build
    return build


def drawn(seed: int, name: str | None = None) -> tuple[str, Drawn]:
    """The graph of a seed: kinds take turns."""
    names: Sequence[str] = tuple(KINDS)
    chosen = name or names[seed % len(names)]
    net = Drawn(seed)
    KINDS[chosen](net)
    return chosen, net


__all__ = ["KINDS", "Drawn", "drawn", "kind"]

"""A decoder without a model: its logits follow from the rows of its cache alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

WORDS = 40


class Fake:
    """Each slot has a cache of tokens; a wrong row gives other logits."""

    def __init__(self, slots: int = 3, rows: int = 64) -> None:
        self.slots, self.rows = slots, rows
        self.cache = np.full((slots, rows), -1)
        self.computed: list[tuple[str, int]] = []  # kind, tokens

    def logits(self, slot: int, count: int) -> np.ndarray:
        seen = self.cache[slot, :count]
        assert (seen >= 0).all(), "a row that nobody wrote is read"
        rng = np.random.default_rng([count, *seen])
        return (3 * rng.standard_normal(WORDS)).astype(np.float32)

    def prefill(self, slot: int, tokens: Sequence[int], start: int) -> np.ndarray:
        self.cache[slot, start : start + len(tokens)] = tokens
        self.cache[slot, start + len(tokens) :] = -1
        self.computed.append(("prefill", len(tokens)))
        return self.logits(slot, start + len(tokens))

    def decode(self, tokens: Sequence[int], starts: Sequence[int]) -> np.ndarray:
        for slot, (token, start) in enumerate(zip(tokens, starts, strict=True)):
            self.cache[slot, start] = token
        self.computed.append(("decode", len(tokens)))
        return np.stack([self.logits(i, start + 1) for i, start in enumerate(starts)])

    def swap(self, a: int, b: int, rows: int) -> None:
        self.cache[[a, b], :rows] = self.cache[[b, a], :rows]

    def copy(self, source: int, target: int, rows: int) -> None:
        self.cache[target, :rows] = self.cache[source, :rows]


class Letters:
    """Text of tokens: one letter each."""

    def add(self, token: int) -> str:
        return chr(ord("A") + token)

    def rest(self) -> str:
        return ""


class Tokenizer:
    """Tokens of letters; a chat is its contents, one behind the other."""

    size = WORDS

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        return [(ord(c) - ord("A")) % WORDS for c in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.piece(t) for t in tokens)

    def piece(self, token: int) -> str:
        return chr(ord("A") + token)

    def chat(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> list[int]:
        return self.encode("".join(m["content"] for m in messages))

    def stream(self) -> Letters:
        return Letters()

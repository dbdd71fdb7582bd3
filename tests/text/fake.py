"""A decoder without a model: its logits follow from the rows of its cache alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

WORDS = 40
CAPITALS = "".join(chr(ord("A") + i) for i in range(WORDS))
PRINTED = "".join(map(chr, range(32, 127))) + "\n"  # one more token ends an answer
HERMES = "{% if tools %}<tools>{{ tools }}</tools><tool_call>{% endif %}{{ messages }}"


class Fake:
    """Each slot has a cache of tokens; a wrong row gives other logits."""

    chunk, padding = 128, 3

    def __init__(self, slots: int = 3, rows: int = 64, words: int = WORDS) -> None:
        self.slots, self.rows, self.words = slots, rows, words
        self.cache = np.full((slots, rows), -1)
        self.computed: list[tuple[str, int]] = []  # kind, tokens

    def logits(self, slot: int, count: int) -> np.ndarray:
        seen = self.cache[slot, :count]
        assert (seen >= 0).all(), "a row that nobody wrote is read"
        rng = np.random.default_rng([count, *seen])
        return (3 * rng.standard_normal(self.words)).astype(np.float32)

    def write(self, slot: int, tokens: Sequence[int], start: int) -> None:
        self.cache[slot, start : start + len(tokens)] = tokens
        self.cache[slot, start + len(tokens) :] = -1
        self.computed.append(("write", len(tokens)))

    def prefill(self, slot: int, tokens: Sequence[int], start: int) -> np.ndarray:
        self.write(slot, tokens, start)
        self.computed[-1] = ("prefill", len(tokens))
        return self.logits(slot, start + len(tokens))

    def prefill_together(
        self, slot: int, prompts: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> np.ndarray:
        longest, found = max(map(len, prompts)), []
        for i, (prompt, start) in enumerate(zip(prompts, starts, strict=True), slot):
            self.write(i, [*prompt, *[0] * (longest - len(prompt))], start)
            found.append(self.logits(i, start + len(prompt)))
        assert max(starts) + longest <= self.rows
        self.computed[-len(prompts) :] = [("together", longest * len(prompts))]
        return np.array(found)

    def scores(self, slot: int, tokens: Sequence[int], start: int) -> np.ndarray:
        self.prefill(slot, tokens, start)
        return np.array([self.logits(slot, start + 1 + i) for i in range(len(tokens))])

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> np.ndarray:
        found = []
        for slot, (row, start) in enumerate(zip(tokens, starts, strict=True)):
            self.cache[slot, start : start + len(row)] = row
            found.append([self.logits(slot, start + 1 + i) for i in range(len(row))])
        self.computed.append(("decode", len(tokens)))
        return np.array(found)

    def swap(self, a: int, b: int, rows: int) -> None:
        self.cache[[a, b], :rows] = self.cache[[b, a], :rows]

    def copy(self, source: int, target: int, rows: int) -> None:
        self.cache[target, :rows] = self.cache[source, :rows]


class Letters:
    """Text of tokens: one letter each."""

    def __init__(self, letters: str = CAPITALS) -> None:
        self.letters = letters

    def add(self, token: int) -> str:
        return self.letters[token : token + 1]

    def rest(self) -> str:
        return ""


class Tokenizer:
    """Tokens of letters; a chat is its contents, one behind the other."""

    def __init__(self, letters: str = CAPITALS, template: str | None = None) -> None:
        self.letters, self.template = letters, template
        self.size = len(letters) + (letters is not CAPITALS)

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        return [self.letters.find(c) % self.size for c in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.piece(t) for t in tokens)

    def piece(self, token: int) -> str:
        return self.letters[token : token + 1]

    def template_values(self) -> frozenset[str]:
        return frozenset({"messages", "tools", "thinking", "reasoning_effort"})

    def special_token(self, text: str) -> int | None:
        return None

    def template_of(self, *, tools: bool) -> str | None:
        return self.template

    @property
    def inner(self) -> Tokenizer:
        return self

    def to_str(self) -> str:
        """tokenizer.json of the same tokens, as byte-level models have it."""
        shown = {" ": "Ġ", "\n": "Ċ"}
        words = {shown.get(c, c): i for i, c in enumerate(self.letters)} | {"</s>": self.size - 1}
        end = {"id": self.size - 1, "content": "</s>", "special": True, "single_word": False,
               "lstrip": False, "rstrip": False, "normalized": False}  # fmt: skip
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                 "use_regex": True}  # fmt: skip
        return json.dumps(
            {"version": "1.0", "added_tokens": [end], "pre_tokenizer": level, "decoder": level,
             "model": {"type": "BPE", "vocab": words, "merges": []}}
        )  # fmt: skip

    def chat(
        self, messages: Sequence[Mapping[str, Any]], thinking: str = "", **_: Any
    ) -> list[int]:
        return self.encode("".join(m["content"] for m in messages) + thinking)

    def stream(self) -> Letters:
        return Letters(self.letters)

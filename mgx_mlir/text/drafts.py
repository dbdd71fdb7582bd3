"""Tokens guessed ahead of a model, which one run then checks: tokens stay those of the model.

The token of a place follows from its logits, the seed and the place. So a guess is right if it is
the token that the model's own logits give there, drawn or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from mgx_mlir.text.engine import Decoder

_LONGEST, _SHORTEST = 3, 2  # tokens that have to occur before
_CHUNK = 128


class Drafter(Protocol):
    """Guesses tokens. An engine calls it under its lock."""

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return up to `most` tokens that may follow; `slot` says which answer they are of."""
        ...


class Lookup:
    """Guess that text repeats: what followed the last tokens where they occurred before.

    Saxena, Prompt Lookup Decoding, 2023.
    """

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return what followed the latest earlier place of the last three tokens, or two."""
        row = np.asarray(tokens, np.int32)
        for size in range(min(_LONGEST, len(row) - 1), _SHORTEST - 1, -1):
            windows = np.lib.stride_tricks.sliding_window_view(row[:-1], size)
            found = np.flatnonzero((windows == row[-size:]).all(-1))
            if len(found):
                start = int(found[-1]) + size
                return row[start : start + most].tolist()
        return []


class DraftModel:
    """Guess what a smaller model of the same tokens finds likeliest."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._rows: list[list[int]] = [[] for _ in range(decoder.slots)]

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return the likeliest tokens, each behind those before."""
        most = min(most, self._decoder.rows - len(tokens))
        if slot >= len(self._rows) or most < 1:
            return []
        kept = self._rows[slot]
        same = next((i for i, (a, b) in enumerate(zip(kept, tokens, strict=False)) if a != b),
                    min(len(kept), len(tokens)))  # fmt: skip
        same = min(same, len(tokens) - 1)  # the last token is always computed, for its logits
        self._rows[slot] = []  # until its rows are written
        for at in range(same, len(tokens), _CHUNK):
            logits = self._decoder.prefill(slot, tokens[at : at + _CHUNK], at)
        found = [int(np.argmax(logits))]
        while len(found) < most:
            at = len(tokens) + len(found) - 1
            found.append(int(np.argmax(self._decoder.prefill(slot, found[-1:], at))))
        self._rows[slot] = [*tokens, *found[:-1]]
        return found

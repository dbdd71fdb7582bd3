"""Tokens guessed ahead of a model, which one run then verifies: the model's own tokens are kept.

The token of a position depends only on its logits, the seed and the position. So a guess is right
if it equals the token chosen from the model's own logits, greedily or by sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from mgx_mlir.text.engine import Decoder

_LONGEST, _SHORTEST = 3, 2  # longest and shortest match of the last tokens with earlier ones
_CHUNK = 128


class Drafter(Protocol):
    """Guesser of tokens. An engine calls it under its lock."""

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return up to `most` tokens that may follow; `slot` identifies the answer."""
        ...


class Lookup:
    """Guess repetition: the tokens that followed an earlier occurrence of the last tokens.

    Saxena, Prompt Lookup Decoding, 2023.
    """

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return the tokens after the latest earlier occurrence of the last three tokens, or
        two.
        """
        row = np.asarray(tokens, np.int32)
        for size in range(min(_LONGEST, len(row) - 1), _SHORTEST - 1, -1):
            windows = np.lib.stride_tricks.sliding_window_view(row[:-1], size)
            found = np.flatnonzero((windows == row[-size:]).all(-1))
            if len(found):
                start = int(found[-1]) + size
                return row[start : start + most].tolist()
        return []


class DraftModel:
    """Guess the likeliest tokens of a smaller model with the same vocabulary."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._rows: list[list[int]] = [[] for _ in range(decoder.slots)]

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return the likeliest tokens, one after the other."""
        most = min(most, self._decoder.rows - len(tokens))
        if slot >= len(self._rows) or most < 1:
            return []
        kept = self._rows[slot]
        same = next(
            (i for i, (a, b) in enumerate(zip(kept, tokens, strict=False)) if a != b),
            # the last token is always computed, because its logits are needed
            min(len(kept), len(tokens)),
        )
        same = min(same, len(tokens) - 1)  # the last token is always computed, for its logits
        self._rows[slot] = []  # until its rows are written
        last = range(same, len(tokens), _CHUNK)[-1]
        for at in range(same, last, _CHUNK):
            self._decoder.write(slot, tokens[at : at + _CHUNK], at)
        found = [int(np.argmax(self._decoder.prefill(slot, tokens[last:], last)))]
        while len(found) < most:
            at = len(tokens) + len(found) - 1
            found.append(int(np.argmax(self._decoder.prefill(slot, found[-1:], at))))
        self._rows[slot] = [*tokens, *found[:-1]]
        return found

"""Tokens guessed ahead of a model, which one run then verifies: the model's own tokens are kept.

The token of a position depends only on its logits, the seed and the position. So a guess is right
if it equals the token chosen from the model's own logits, greedily or by sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mgx_mlir.text.engine import Decoder

_LONGEST = 3  # tokens of the longest match of the last ones with earlier ones; two are the least
_CHUNK = 128


class Drafter(Protocol):
    """Guesser of tokens. An engine calls it under its lock."""

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return up to `most` tokens that may follow; `slot` identifies the answer."""
        ...


class Lookup:
    """Guess repetition: the tokens that followed an earlier occurrence of the last tokens.

    Saxena, Prompt Lookup Decoding, 2023. Each slot's tokens are kept as an array, which a list of
    more tokens than before extends: converting 2000 of them takes 90 us.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[Sequence[int], NDArray[np.int32], int]] = {}

    def _row(self, slot: int, tokens: Sequence[int]) -> NDArray[np.int32]:
        """Return the tokens. The same object is taken to hold those of the last call first."""
        count = len(tokens)
        held, row, known = self._held.get(slot, (None, np.empty(0, np.int32), 0))
        if held is not tokens or count < known:
            known = 0
        if len(row) < count:
            row = np.concatenate([row[:known], np.empty(2 * count - known, np.int32)])
        row[known:count] = tokens[known:]
        self._held[slot] = tokens, row, count
        return row[:count]

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        """Return the tokens after the latest earlier occurrence of the last three tokens, or
        two.
        """
        row, best = self._row(slot, tokens), np.empty(0, np.intp)
        found = np.flatnonzero(row[:-1] == row[-1])  # ends of matches of growing size
        for size in range(2, _LONGEST + 1):
            found = found[found >= size - 1]
            found = found[row[found - size + 1] == row[-size]] if len(found) else found
            if not len(found):
                break
            best = found
        if not len(best):
            return []
        start = int(best[-1]) + 1
        return row[start : start + most].tolist()


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

"""Beam search: the likeliest sequences of tokens, several of which are followed at once.

A candidate is a followed sequence and one more token. Its score is the sum of log-probabilities,
and that of a finished sequence is divided by length**length_penalty. Scores, candidates and ends
are those of transformers, which the tests compare with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.sampling import is_number, is_whole, log_softmax, penalised

# limits of the length penalty: beyond them the power of 2**20 tokens overflows f64
_PENALTIES = -50.0, 50.0


@dataclass(frozen=True)
class Beams:
    """Settings of a beam search. Raises UsageError with all that are out of range.

    length_penalty: above 0 longer sequences gain. early_stopping: True ends once `count` sequences
    are finished, False where the best followed one cannot gain at its length, "never" where it
    cannot at any length.
    """

    count: int
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False

    def __post_init__(self) -> None:
        problems = []
        if not is_whole(self.count) or self.count < 1:
            problems.append(f"num_beams expected an integer, 1 or more, got {self.count!r}")
        least, most = _PENALTIES
        if not (is_number(self.length_penalty) and least <= self.length_penalty <= most):
            problems.append(f"length_penalty expected a number {least:g} to {most:g}, got "
                            f"{self.length_penalty!r}")  # fmt: skip
        if not (isinstance(self.early_stopping, bool) or self.early_stopping == "never"):
            problems.append("early_stopping expected True, False or 'never', got "
                            f"{self.early_stopping!r}")  # fmt: skip
        if problems:
            raise UsageError("; ".join(problems))


@dataclass(frozen=True)
class Hypothesis:
    """An answer in tokens, and its score."""

    tokens: tuple[int, ...]
    score: float


class BeamSearch:
    """The sequences that are followed, best first, and those that are finished.

    ends: tokens that end an answer. most: tokens of an answer.
    """

    def __init__(self, beams: Beams, ends: frozenset[int], most: int) -> None:
        self.beams, self._ends, self._most = beams, ends, most
        self.running = [Hypothesis((), 0.0)]
        self.finished: list[Hypothesis] = []  # best first, at most `beams.count`
        self.done = False

    @property
    def best(self) -> Hypothesis:
        """Return the finished sequence with the highest score."""
        return self.finished[0]

    def step(
        self, logits: NDArray[Any], prompt: Sequence[int] = (), penalty: float = 1.0
    ) -> list[tuple[int, int]]:
        """Return the source of each sequence that is followed now, and its new token.

        logits: {sequences, vocabulary} after each of `running`. penalty: for tokens that occurred
        in the prompt or the sequence. `done` says whether the search is over.
        """
        count, words = self.beams.count, logits.shape[-1]
        scores = np.array([
            penalised(log_softmax(row), [*prompt, *h.tokens], penalty) + h.score
            for row, h in zip(logits, self.running, strict=True)
        ]).reshape(-1)  # fmt: skip
        # enough candidates that `count` remain although any end token may end each sequence
        wanted = max(2, 1 + len(self._ends)) * count
        if wanted > words:
            raise UsageError(f"{count} beams consider {wanted} tokens, and the model has {words}")
        places = np.argpartition(-scores, wanted - 1)[:wanted]
        places = places[np.lexsort((places, -scores[places]))]
        followed: list[tuple[int, int]] = []
        running: list[Hypothesis] = []
        for rank, place in enumerate(places.tolist()):
            source, token = divmod(place, words)
            made = Hypothesis((*self.running[source].tokens, token), float(scores[place]))
            if token not in self._ends and len(made.tokens) < self._most:
                if len(running) < count:
                    followed.append((source, token))
                    running.append(made)
            elif rank < count:
                self._finish(made)
        self.running = running
        self.done = not running or not self._may_gain()
        return followed

    def _scaled(self, score: float, length: int) -> float:
        return score / length**self.beams.length_penalty

    def _finish(self, made: Hypothesis) -> None:
        """Keep a finished sequence if it is among the best."""
        score = self._scaled(made.score, len(made.tokens))
        self.finished.append(Hypothesis(made.tokens, score))
        self.finished.sort(key=lambda h: -h.score)  # stable
        del self.finished[self.beams.count :]

    def _may_gain(self) -> bool:
        """Return whether a followed sequence may become better than a finished one."""
        if len(self.finished) < self.beams.count:
            return True
        if self.beams.early_stopping is True:
            return False
        length, best = len(self.running[0].tokens), self.running[0].score
        if self.beams.early_stopping == "never" and self.beams.length_penalty > 0:
            length = self._most
        return self._scaled(best, length) > self.finished[-1].score


def moves(sources: Sequence[int], count: int) -> list[int]:
    """Return for each new sequence the old one whose cache it takes over.

    sources: the old sequence that each new one continues. A new one takes the cache of its source,
    if it is the first of its children, else that of a sequence without children, which gets a copy.
    """
    free = [i for i in range(count) if i not in set(sources)]
    taken: set[int] = set()
    found = []
    for source in sources:
        found.append(free.pop(0) if source in taken else source)
        taken.add(source)
    return found

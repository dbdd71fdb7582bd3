"""A request to an engine, the pieces of its answer, and the handle that yields them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.beams import Beams
from mgx_mlir.text.sampling import Sampling, is_whole

if TYPE_CHECKING:
    from mgx_mlir.text.engine import Engine


class Following(Protocol):
    """A running answer, constrained by a grammar."""

    @property
    def complete(self) -> bool:
        """Return whether nothing may follow."""
        ...

    def allowed(self) -> NDArray[np.bool_] | None:
        """Return the tokens {vocabulary} that may come next; None allows all."""
        ...

    def accept(self, token: int) -> None:
        """Advance the grammar by a chosen token."""
        ...


class Constraint(Protocol):
    """A grammar for tokens. It is stateless: each answer begins a new state."""

    def begin(self) -> Following:
        """Return the initial state of an answer."""
        ...


@dataclass(frozen=True)
class Request:
    """A prompt in tokens, and the settings of its answer. Raises UsageError for wrong values."""

    tokens: Sequence[int]
    max_new_tokens: int = 256
    sampling: Sampling = field(default_factory=Sampling)
    stop: tuple[str, ...] = ()  # strings; the text ends before the first occurrence of one
    stop_tokens: frozenset[int] | None = None  # None: those of the model
    logprobs: int | None = None  # number of likeliest tokens to list per position; None: no scores
    constraint: Constraint | None = None
    score_prompt: bool = False  # `logprobs` are listed for the prompt's tokens, too
    beams: Beams | None = None  # None: one sequence is followed, token by token
    min_new_tokens: int = 0  # tokens before one that ends the answer

    def __post_init__(self) -> None:
        problems = []
        if not len(self.tokens):
            problems.append("the prompt has no token")
        if not is_whole(self.max_new_tokens) or self.max_new_tokens < 1:
            problems.append("max_new_tokens expected an integer, 1 or more, got "
                            f"{self.max_new_tokens!r}")  # fmt: skip
        if not is_whole(self.min_new_tokens) or self.min_new_tokens < 0:
            problems.append("min_new_tokens expected an integer, 0 or more, got "
                            f"{self.min_new_tokens!r}")  # fmt: skip
        if self.logprobs is not None and not (is_whole(self.logprobs) and self.logprobs >= 0):
            problems.append("logprobs expected an integer, 0 or more, or None, got "
                            f"{self.logprobs!r}")  # fmt: skip
        if self.score_prompt and self.logprobs is None:
            problems.append("score_prompt expected a number of logprobs, got None")
        if not all(isinstance(s, str) for s in self.stop):
            problems.append(f"stop expected strings, got {self.stop!r}")
        if self.constraint is not None and not hasattr(self.constraint, "begin"):
            problems.append(f"constraint expected a Grammar, got {self.constraint!r}")
        if self.beams is not None:
            problems += self._beside_beams()
        if problems:
            raise UsageError("; ".join(problems))

    def _beside_beams(self) -> list[str]:
        """Return errors of options that a beam search excludes: tokens are known at its end."""
        other = {
            "temperature": self.sampling.temperature != 0,
            "stop strings": any(self.stop),
            "min_new_tokens": self.min_new_tokens != 0,
            "logprobs": self.logprobs is not None,
            "constraint": self.constraint is not None,
            "frequency_penalty, presence_penalty and logit_bias": self.sampling.biased,
        }
        return [f"beams take no {name}" for name, given in other.items() if given]


Top = tuple[tuple[int, float], ...]  # likeliest tokens and their log-probabilities, best first


@dataclass(frozen=True)
class Piece:
    """One token of an answer.

    Text may be empty, for part of a character or of a stop string; it comes with a later piece.
    """

    token: int
    text: str
    logprob: float | None = None  # natural logarithm, by the model's own distribution
    top: Top = ()
    finish_reason: str | None = None  # the last piece has one: "stop", "length"


class Handle(Iterator[Piece]):
    """A running answer; iterate for its pieces.

    If no thread runs the engine's steps, iterating does.
    """

    def __init__(self, engine: Engine, request: Request) -> None:
        self.request = request
        self.prompt_tokens = len(request.tokens)
        self.cached_tokens = 0  # prompt tokens found in the cache
        # scores of the prompt's tokens from the second on, for a request with `score_prompt`
        self.prompt_scores: list[tuple[float, Top]] = []
        self.tokens: list[int] = []
        self.finish_reason: str | None = None  # "stop", "length", "cancelled", "error"
        self.error: BaseException | None = None
        self.pieces: deque[Piece] = deque()
        self.cancelled = False
        self._engine = engine

    @property
    def done(self) -> bool:
        """Return whether the answer has all of its pieces."""
        return self.finish_reason is not None

    def cancel(self) -> None:
        """End the answer; iterating ends after the pieces that exist."""
        self.cancelled = True
        self._engine.wake()

    def __next__(self) -> Piece:
        while not self.pieces:
            if self.done:
                if self.error is not None:
                    raise self.error
                raise StopIteration
            self._engine.advance(self)
        return self.pieces.popleft()

    def text(self) -> str:
        """Return the text of all pieces that were not taken yet, to the end."""
        return "".join(piece.text for piece in self)

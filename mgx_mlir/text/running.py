"""State of an engine: its slots, running requests, and which prompts one call computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.text.beams import BeamSearch
from mgx_mlir.text.requests import Handle
from mgx_mlir.text.stops import Stops


@dataclass
class Slot:
    """A slot: the tokens whose keys and values it has, and the answer that uses it."""

    tokens: list[int] = field(default_factory=list)
    running: Running | None = None
    used: int = 0  # the engine's clock at the last use


class Running:
    """A running request: all of its tokens, and its detokenizer."""

    def __init__(self, handle: Handle, stream: Callable[[int], str], rest: Callable[[], str]):
        self.handle, self.request = handle, handle.request
        self.tokens = list(handle.request.tokens)
        self.stream, self.rest = stream, rest
        self.stops = Stops(handle.request.stop)
        constraint = handle.request.constraint
        self.following = None if constraint is None else constraint.begin()
        self._free = handle.request.sampling.plain and constraint is None
        self.group: Group | None = None  # the beam search that it is a sequence of

    @property
    def likeliest(self) -> bool:
        """Return whether the next token is the likeliest by the model's own logits."""
        return self._free and len(self.handle.tokens) >= self.request.min_new_tokens

    def allowed(self, ends: frozenset[int], size: int) -> NDArray[np.bool_] | None:
        """Return which of `size` tokens may come next; None: all. ends: those that end the answer,
        which come behind `min_new_tokens`, or where a constraint allows no others.
        """
        found = None if self.following is None else self.following.allowed()
        if len(self.handle.tokens) >= self.request.min_new_tokens:
            return found
        longer = np.ones(size, np.bool_) if found is None else found.copy()
        longer[[token for token in ends if token < size]] = False
        return longer if longer.any() else found


class Group:
    """A beam search and its sequences; all have the handle of the first, and a slot each.

    Slots are set aside when a request is admitted, and taken when its prompt is computed.
    """

    def __init__(self, search: BeamSearch, first: Running) -> None:
        self.search, self.first = search, first
        self.members = [first]  # parallel to `search.running`, once the prompt is computed
        self.reserved = search.beams.count - 1  # slots set aside


class Text(Protocol):
    """Text from tokens as they come."""

    def add(self, token: int) -> str:
        """Return the text that a token completes."""
        ...

    def rest(self) -> str:
        """Return the remaining text at the end."""
        ...


def joined(prompts: Sequence[tuple[int, int]], chunk: int, padding: int, rows: int) -> list[int]:
    """Return the indices of prompts that are computed in the call of the first.

    prompts: computed rows and remaining tokens, oldest first. A call has `chunk` tokens at most,
    with padding to the longest prompt. A prompt joins if that takes less padding than `padding`.
    """
    start, longest = prompts[0]
    found, latest = [0], start
    for i, (start, count) in enumerate(prompts[1:], 1):
        size = max(longest, count)
        added = size * (len(found) + 1) - longest * len(found) - count
        fits = size * (len(found) + 1) <= chunk and max(latest, start) + size <= rows
        if added < padding and fits:
            found.append(i)
            longest, latest = size, max(latest, start)
    return found

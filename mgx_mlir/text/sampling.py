"""The choice of a token from logits, reproducible: random numbers depend only on seed and
position.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import UsageError

Floats = NDArray[np.floating]
_PENALTIES = 0.01, 100.0  # limits of the penalty, beyond which f32 logits may overflow
_SUBTRACTED = -2.0, 2.0  # OpenAI's limits of both penalties that are subtracted
_BIASES = -100.0, 100.0  # OpenAI's limits of a bias, which bans a token or leaves no other
_HEAD = 256  # likeliest tokens that are sorted first for top p
_ROUNDING = 1e-9  # above that of a sum of 2**20 probabilities in f64


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, including numpy's; a bool is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value is an integer or a float, including numpy's."""
    return is_whole(value) or isinstance(value, float | np.floating)


@dataclass(frozen=True)
class Sampling:
    """Settings of a choice; `temperature` 0 takes the likeliest token.

    Logits are changed in the order of transformers and vLLM: bias, repetition penalty, the other
    penalties, temperature, top k, top p, min p. Raises UsageError with all settings that are out
    of range.
    """

    temperature: float = 0.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    frequency_penalty: float = 0.0  # subtracted for each time that the answer has the token
    presence_penalty: float = 0.0  # subtracted once if the answer has the token
    logit_bias: Mapping[int, float] = field(default_factory=dict)  # added, by token

    def __post_init__(self) -> None:
        least, most = _PENALTIES
        low, high = _SUBTRACTED
        subtracted = f"a number {low:g} to {high:g}"
        rules: tuple[tuple[str, Callable[[Any], bool], Callable[[Any], bool], str], ...] = (
            ("temperature", is_number, lambda x: 0 <= x < math.inf, "a number, 0 or more"),
            ("top_k", is_whole, lambda x: x >= 0, "an integer, 0 (all) or more"),
            ("top_p", is_number, lambda x: 0 < x <= 1, "a number above 0 and at most 1"),
            ("min_p", is_number, lambda x: 0 <= x <= 1, "a number 0 to 1"),
            ("repetition_penalty", is_number, lambda x: least <= x <= most,
             f"a number {least:g} to {most:g}"),
            ("seed", is_whole, lambda x: 0 <= x < 1 << 64, "an integer 0 to 2**64 - 1"),
            ("frequency_penalty", is_number, lambda x: low <= x <= high, subtracted),
            ("presence_penalty", is_number, lambda x: low <= x <= high, subtracted),
            ("logit_bias", lambda x: isinstance(x, Mapping), _are_biases,
             f"numbers {_BIASES[0]:g} to {_BIASES[1]:g} by token"),
        )  # fmt: skip
        wrong = [
            f"{name} expected {said}, got {getattr(self, name)!r}"
            for name, right_type, in_range, said in rules
            if not (right_type(x := getattr(self, name)) and in_range(x))
        ]
        if wrong:
            raise UsageError("; ".join(wrong))

    @property
    def biased(self) -> bool:
        """Return whether OpenAI's penalties, or biases, change logits."""
        return bool(self.frequency_penalty or self.presence_penalty or self.logit_bias)

    @property
    def plain(self) -> bool:
        """Return whether the likeliest token by unchanged logits is taken."""
        return self.greedy and self.repetition_penalty == 1 and not self.biased

    @property
    def greedy(self) -> bool:
        """Return whether the likeliest token is taken."""
        return self.temperature == 0 or self.top_k == 1


def _are_biases(rows: Mapping[Any, Any]) -> bool:
    """Return whether a mapping has biases in range, by tokens."""
    least, most = _BIASES
    return all(
        is_whole(t) and t >= 0 and is_number(b) and least <= b <= most for t, b in rows.items()
    )


class _Scratch(threading.local):
    """Arrays of a thread for one call at a time: pages of fresh ones take longer than the work."""

    def __init__(self) -> None:
        self._held: dict[str, NDArray[np.float64]] = {}

    def array(self, name: str, count: int) -> NDArray[np.float64]:
        """Return an array {count} of any content."""
        held = self._held.get(name)
        if held is None or len(held) < count:
            held = self._held[name] = np.empty(count)
        return held[:count]

    def copy(self, name: str, values: Floats) -> NDArray[np.float64]:
        """Return a copy in f64."""
        found = self.array(name, len(values))
        found[...] = values
        return found


_SCRATCH = _Scratch()


def exponentials(
    seed: int, place: int, count: int, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the random numbers of a position in a sequence, one for each token; stateless.

    They have the exponential distribution, and are above 0. out: memory for them.
    """
    bits = np.random.Philox(key=seed, counter=[0, place, 0, 0])
    drawn = np.random.Generator(bits).standard_exponential(count, out=out)
    return np.maximum(drawn, np.finfo(np.float64).tiny, out=out)


def penalised(logits: Floats, seen: Sequence[int], penalty: float) -> Floats:
    """Return logits {vocabulary} with tokens that occurred made less likely.

    Keskar et al., CTRL, 2019: positive logits are divided by the penalty, others multiplied.
    """
    if penalty == 1 or not len(seen):
        return logits
    places = np.unique(np.asarray(seen, np.int64))
    found = logits.copy()
    values = found[places]
    found[places] = np.where(values > 0, values / penalty, values * penalty)
    return found


def biased(logits: Floats, bias: Mapping[int, float]) -> Floats:
    """Return logits {vocabulary} with a number added for each token that has one."""
    if not bias:
        return logits
    found = logits.copy()
    found[list(bias)] += np.array(list(bias.values()), found.dtype)
    return found


def counted(logits: Floats, answer: Sequence[int], frequency: float, presence: float) -> Floats:
    """Return logits {vocabulary} less penalties for tokens of the answer so far.

    OpenAI, API reference: logit - count * frequency - (count > 0) * presence.
    """
    if (frequency == 0 and presence == 0) or not len(answer):
        return logits
    places, counts = np.unique(np.asarray(answer, np.int64), return_counts=True)
    found = logits.copy()
    found[places] -= (counts * frequency + presence).astype(found.dtype)
    return found


def log_softmax(logits: Floats) -> NDArray[np.float64]:
    """Return log-probabilities {vocabulary} in f64."""
    wide = logits.astype(np.float64)
    wide -= wide.max()
    return wide - np.log(np.exp(wide).sum())


def kept(
    logits: Floats, s: Sampling, out: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the candidate tokens, ascending, and their probabilities in f64.

    out: memory for the probabilities of all tokens, which may be returned.
    """
    wide = np.empty(len(logits)) if out is None else out
    wide[...] = logits
    wide -= wide.max()
    with np.errstate(over="ignore"):  # the lowest temperatures leave only the likeliest token
        wide /= s.temperature
    tokens = _every(len(wide))
    if 0 < s.top_k < len(wide):
        tokens = np.flatnonzero(
            wide >= _largest(wide, s.top_k)
        )  # ties are kept, as in transformers
        wide = wide[tokens]
    p = np.exp(wide, out=wide)
    p /= p.sum()
    if s.top_p < 1:
        stay = _nucleus(p, s.top_p)
        tokens, p = tokens[stay], p[stay] / p[stay].sum()
    if s.min_p > 0:
        stay = np.flatnonzero(p >= s.min_p * p.max())
        tokens, p = tokens[stay], p[stay] / p[stay].sum()
    return tokens, p


@lru_cache(maxsize=4)  # models of a process
def _every(count: int) -> NDArray[np.int64]:
    """Return the numbers of all tokens, in memory that is not to be written."""
    found = np.arange(count)
    found.flags.writeable = False
    return found


def _largest(values: Floats, count: int) -> Any:
    """Return the number that `count` of the values are not below."""
    sorted_ = _SCRATCH.copy("sorted", values)
    sorted_.partition(len(values) - count)
    return sorted_[len(values) - count]


def _nucleus(p: NDArray[np.float64], top_p: float) -> NDArray[np.int64]:
    """Return the indices, ascending, of the largest probabilities that make up `top_p`."""
    count, head = _HEAD, _every(len(p))
    while count < len(p):
        largest = np.flatnonzero(p >= _largest(p, count))
        if p[largest].sum() > top_p + _ROUNDING:
            head = largest
            break
        count *= 8
    order = head[np.argsort(-p[head], kind="stable")]
    before = np.cumsum(p[order]) - p[order]
    return np.sort(order[before < top_p])


def choose(
    logits: Floats,
    s: Sampling,
    place: int,
    seen: Sequence[int] = (),
    allowed: NDArray[np.bool_] | None = None,
) -> int:
    """Return the token for a position of a sequence.

    `logits` are {vocabulary}, `seen` the tokens before, the last `place` of which are the answer's,
    `allowed` a grammar's mask. Raises UsageError if it allows none.
    """
    logits = penalised(biased(logits, s.logit_bias), seen, s.repetition_penalty)
    answer = seen[max(0, len(seen) - place) :]
    logits = counted(logits, answer, s.frequency_penalty, s.presence_penalty)
    if allowed is not None:
        if not allowed.any():
            raise UsageError("the grammar allows no token here")
        logits = np.where(allowed, logits, -np.inf)
    if s.greedy:
        return int(np.argmax(logits))
    tokens, p = kept(logits, s, _SCRATCH.array("p", len(logits)))
    count = int(tokens[-1]) + 1
    drawn = exponentials(s.seed, place, count, _SCRATCH.array("drawn", count))
    if len(tokens) < count:
        drawn = drawn[tokens]
    # the smallest of exponential variates with rates p belongs to a token with probability p;
    # cumulative sums would change the token if logits differ by rounding
    return int(tokens[np.argmax(np.divide(p, drawn, out=p))])


def likeliest(scores: Floats, count: int) -> NDArray[np.int64]:
    """Return the `count` tokens of the largest scores or logits, best first."""
    if count <= 0:
        return np.empty(0, np.int64)
    count = min(count, len(scores))
    best = np.flatnonzero(scores >= _largest(scores, count))
    return best[np.lexsort((best, -scores[best]))][:count]


def scored(logits: Floats, token: int, count: int) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Return the log-probability of a token, and the `count` likeliest tokens with theirs."""
    wide = _SCRATCH.copy("p", logits)
    most = wide.max()
    wide -= most
    total = np.log(np.exp(wide, out=wide).sum())
    best = [token, *likeliest(logits, count).tolist()]
    own, *top = (float(np.float64(logits[t]) - most - total) for t in best)
    return own, tuple(zip(best[1:], top, strict=True))

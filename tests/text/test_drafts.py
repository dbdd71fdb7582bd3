"""Tokens that are guessed ahead: answers stay as they are, whatever the guesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mgx_mlir import text
from mgx_mlir.core.errors import UsageError
from mgx_mlir.text import Engine, Request, Sampling
from mgx_mlir.text.drafts import DraftModel, Lookup
from tests.text.fake import WORDS, Fake, Letters, Tokenizer
from tests.text.test_engine import alone, requests


class Guesses:
    """Right guesses, wrong ones, and none, by chance."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def draft(self, slot: int, tokens: Sequence[int], most: int) -> list[int]:
        right = alone(Request(list(tokens), most)) if most else []
        return [t if self.rng.random() < 0.8 else 0 for t in right[: self.rng.integers(0, 5)]]


def made() -> list[Any]:
    return [Guesses(), Lookup(), DraftModel(Fake(2, 40))]


@pytest.mark.parametrize("drafter", made(), ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("slots", [1, 3])
def test_answers_are_those_without_guesses(drafter: Any, slots: int) -> None:
    """Greedy, drawn and with a penalty; joining, leaving, and full caches."""
    with Engine(Fake(slots), Letters, chunk=4, drafter=drafter) as e:
        handles = [e.submit(r) for r in requests(12)]
        full = e.submit(Request([1] * 60, 99))
        for handle in handles:
            assert [p.token for p in handle] == alone(handle.request)
        assert [p.token for p in full] == alone(Request([1] * 60, 4))
        assert e.decoded_tokens >= e.steps
        if isinstance(drafter, Guesses):
            assert 0 < e.accepted_tokens < e.drafted_tokens


def test_right_guesses_save_steps() -> None:
    with Engine(Fake(1), Letters, drafter=DraftModel(Fake(1)), draft_tokens=3) as e:
        handle = e.submit(Request([4, 2], 21))
        assert [p.token for p in handle] == alone(Request([4, 2], 21))
        assert (e.steps, e.accepted_tokens) == (5, 15)  # the first token is of the prompt


def test_stops_end_an_answer_within_the_guesses() -> None:
    tokens = alone(Request([5], 12))
    for end in range(1, 12):
        stops = frozenset([tokens[end]])
        first = tokens.index(tokens[end])
        with Engine(Fake(1), Letters, stop_tokens=stops, drafter=DraftModel(Fake(1))) as e:
            assert [p.token for p in e.submit(Request([5], 12))] == tokens[: first + 1]
            again = e.submit(Request([5, *tokens[:first], 7, 8], 4))
            assert [p.token for p in again] == [p.token for p in e.submit(again.request)]
            assert [*again.tokens] == alone(again.request)[: len(again.tokens)]


def test_a_lookup_finds_what_followed() -> None:
    row = [1, 2, 3, 4, 5, 9, 2, 3, 8, 1, 2, 3]
    assert Lookup().draft(0, row, 2) == [4, 5]  # three tokens before the later two
    assert Lookup().draft(0, row[1:], 9) == [8, 1, 2, 3]
    assert Lookup().draft(0, [1, 2, 3], 4) == []
    assert Lookup().draft(0, [1], 4) == []


def by_windows(tokens: list[int], most: int) -> list[int]:
    """Tokens that followed the last three, or two, at their latest earlier occurrence."""
    for size in (3, 2):
        for end in range(len(tokens) - 1, size - 1, -1):
            if tokens[end - size : end] == tokens[-size:]:
                return tokens[end : end + most]
    return []


def test_a_lookup_follows_each_slot() -> None:
    """Lists that grow, other lists, and shorter ones: as a search without a memory."""
    rng, lookup = np.random.default_rng(2), Lookup()
    rows = {slot: rng.integers(0, 4, 1 + slot).tolist() for slot in range(3)}
    for _ in range(400):
        slot = int(rng.integers(0, 3))
        rows[slot] += rng.integers(0, 4, rng.integers(0, 4)).tolist()
        if rng.random() < 0.1:
            rows[slot] = rows[slot][: rng.integers(1, 9)]
        assert lookup.draft(slot, rows[slot], 4) == by_windows(rows[slot], 4)
    assert lookup.draft(5, (1, 2, 3, 1, 2), 2) == [3, 1]


def test_a_draft_of_another_kind_is_refused() -> None:
    class Files:
        def __init__(self) -> None:
            self.config = {"max_position_embeddings": 96}

        def tokenizer(self) -> Any:
            return Tokenizer()

    small = text.TextModel(Tokenizer("ab"), Fake())  # type: ignore[arg-type]
    for draft, message in ((5, "'lookup' or a TextModel"), (small, f"3 tokens.*{WORDS}")):
        with pytest.raises(UsageError, match=message):
            text.load(Files(), draft=draft)  # type: ignore[arg-type, call-overload]


def test_sampling_is_exact_with_guesses() -> None:
    made = Request([3, 1], 30, Sampling(1.1, top_p=0.9, seed=8))
    with Engine(Fake(1), Letters, drafter=Guesses()) as e:
        assert [p.token for p in e.submit(made)] == alone(made)

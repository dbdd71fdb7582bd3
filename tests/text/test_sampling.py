"""The choice of tokens, against formulas in other words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.sampling import Sampling, choose, exponentials, kept, log_softmax, scored

LOGITS = np.array([2.0, 1.0, 0.5, 0.0, -1.0], np.float32)


def test_greedy_takes_the_first_of_the_largest() -> None:
    assert choose(np.array([0, 3, 3], np.float32), Sampling(), 0) == 1
    assert choose(LOGITS, Sampling(temperature=2, top_k=1), 5) == 0


def test_what_may_be_drawn() -> None:
    p = np.exp(LOGITS.astype(float) / 0.7)
    p /= p.sum()
    for s, want in (
        (Sampling(0.7), range(5)),
        (Sampling(0.7, top_k=2), range(2)),
        (Sampling(0.7, top_p=float(p[0]) - 1e-9), range(1)),
        (Sampling(0.7, top_p=float(p[0]) + 1e-9), range(2)),
        (Sampling(0.7, min_p=float(p[2] / p[0]) - 1e-9), range(3)),
        (Sampling(0.7, min_p=float(p[2] / p[0]) + 1e-9), range(2)),
    ):
        tokens, got = kept(LOGITS, s)
        assert tokens.tolist() == list(want)
        np.testing.assert_allclose(got, p[list(want)] / p[list(want)].sum(), rtol=1e-12)


def test_draws_have_the_frequencies_of_the_distribution() -> None:
    s = Sampling(1.0, seed=11)
    drawn = np.bincount([choose(LOGITS, s, i) for i in range(4000)], minlength=5) / 4000
    p = np.exp(LOGITS) / np.exp(LOGITS).sum()
    assert np.abs(drawn - p).max() < 0.03  # four deviations of a frequency


def test_a_place_has_its_numbers() -> None:
    assert exponentials(7, 3, 50).tolist() == exponentials(7, 3, 50).tolist()
    assert exponentials(7, 3, 20).tolist() == exponentials(7, 3, 50)[:20].tolist()
    drawn = [exponentials(seed, place, 50) for seed in range(9) for place in range(9)]
    assert len(np.unique(drawn)) == 81 * 50


def test_rounding_of_logits_hardly_changes_what_is_drawn() -> None:
    """With a real model's number of tokens, a sum of probabilities would change 6 of 1,000."""
    rng = np.random.default_rng(0)
    logits = (3 * rng.standard_normal(49152)).astype(np.float32)
    near = logits + (1e-5 * rng.standard_normal(49152)).astype(np.float32)
    s = Sampling(1.0, seed=2)
    assert sum(choose(logits, s, i) != choose(near, s, i) for i in range(1000)) <= 1


def test_a_penalty_counts_a_token_once() -> None:
    s = Sampling(repetition_penalty=3.0)
    assert choose(LOGITS, s, 0, [0, 0, 4]) == 1
    assert choose(np.array([-1.0, -2.0], np.float32), s, 0, [0]) == 1


def by_openai(s: Sampling, answer: list[int]) -> np.ndarray:
    """OpenAI's definition, token by token."""
    return np.array([
        LOGITS[t] + s.logit_bias.get(t, 0) - answer.count(t) * s.frequency_penalty
        - (answer.count(t) > 0) * s.presence_penalty
        for t in range(len(LOGITS))
    ])  # fmt: skip


@pytest.mark.parametrize("frequency", [0, 0.7, -0.3])
@pytest.mark.parametrize("presence", [0, 2, -2])
@pytest.mark.parametrize("bias", [{}, {3: 5.0, 0: -100}])
def test_penalties_and_biases_of_openai(
    frequency: float, presence: float, bias: dict[int, float]
) -> None:
    """Tokens of the prompt do not count, and each of the answer does."""
    how = {"frequency_penalty": frequency, "presence_penalty": presence, "logit_bias": bias}
    prompt = [3, 3, 2]
    for answer in ([], [0], [0, 0, 1], [0, 1, 0, 0, 4]):
        s = Sampling(**how)  # type: ignore[arg-type]
        want = by_openai(s, answer)
        seen, place = prompt + answer, len(answer)
        assert choose(LOGITS, s, place, seen) == np.argmax(want)
        allowed = np.arange(5) != np.argmax(want)
        second = np.argsort(-want, kind="stable")[1]
        assert choose(LOGITS, s, place, seen, allowed) == second
        p = np.exp(want) / np.exp(want).sum()
        drawn = Sampling(1.0, seed=5, **how)  # type: ignore[arg-type]
        numbers = exponentials(5, place, 5)
        assert choose(LOGITS, drawn, place, seen) == np.argmax(p / numbers)


def test_the_largest_biases_ban_a_token_and_leave_no_other() -> None:
    only, never = Sampling(1.5, logit_bias={4: 100}), Sampling(1.5, logit_bias={0: -100})
    assert {choose(LOGITS, only, i) for i in range(200)} == {4}
    assert 0 not in {choose(LOGITS, never, i) for i in range(200)}


def test_a_mask_leaves_what_it_allows() -> None:
    allowed = np.array([0, 0, 1, 1, 0], bool)
    assert choose(LOGITS, Sampling(), 0, allowed=allowed) == 2
    assert {choose(LOGITS, Sampling(1.5), i, allowed=allowed) for i in range(50)} == {2, 3}
    with pytest.raises(UsageError, match="allows no token"):
        choose(LOGITS, Sampling(), 0, allowed=np.zeros(5, bool))


def test_scores() -> None:
    scores = log_softmax(LOGITS)
    assert np.exp(scores).sum() == pytest.approx(1)
    assert scored(LOGITS, 4, 3) == (scores[4], tuple((t, scores[t]) for t in range(3)))
    assert scored(LOGITS, 0, 0) == (scores[0], ())
    assert len(scored(LOGITS, 0, 9)[1]) == 5
    assert [t for t, _ in scored(np.array([1, 2, 2, 0, 2], np.float32), 0, 2)[1]] == [1, 2]


def by_sorting(s: Sampling, logits: np.ndarray) -> list[int]:
    """Tokens of the largest probabilities up to top p, one by one."""
    p = np.exp((logits - logits.max()) / s.temperature)
    p /= p.sum()
    found, total = list[int](), 0.0
    for token in np.argsort(-p, kind="stable").tolist():
        if total >= s.top_p:
            break
        found.append(token)
        total += p[token]
    return sorted(found)


@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.95, 0.9999])
@pytest.mark.parametrize("width", [0.05, 1.0, 6.0])
def test_top_p_of_many_tokens(top_p: float, width: float) -> None:
    """The likeliest tokens are sorted alone, as many as are needed; equal ones are in order."""
    logits = np.round(8 * width * np.random.default_rng(1).standard_normal(20_000)) / 8
    s = Sampling(1.0, top_p=top_p, seed=3)
    tokens, p = kept(logits, s)
    assert tokens.tolist() == by_sorting(s, logits)
    assert p.sum() == pytest.approx(1)
    numbers = exponentials(3, 7, len(logits))[tokens]
    assert choose(logits, s, 7) == tokens[np.argmax(p / numbers)]


def test_threads_choose_at_once() -> None:
    """Each has arrays of its own for a choice."""
    logits = np.random.default_rng(1).standard_normal(30_000).astype(np.float32)
    kinds = [Sampling(1.0, seed=i, top_k=40 * (i % 2), top_p=1 - 0.1 * (i % 3)) for i in range(6)]
    want = [[choose(logits, s, place) for place in range(30)] for s in kinds]
    with ThreadPoolExecutor(6) as pool:
        got = pool.map(lambda s: [choose(logits, s, place) for place in range(30)], kinds)
        assert list(got) == want


def test_all_wrong_settings_are_told() -> None:
    with pytest.raises(UsageError) as found:
        Sampling(-1, -1, 0, 2, 0, -1, 3, -3, {0: 101})
    assert str(found.value).count(";") == 8

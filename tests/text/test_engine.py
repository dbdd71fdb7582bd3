"""The engine over a decoder without a model: what is answered, and what is computed for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text import Engine, Request, Sampling
from mgx_mlir.text.drafts import Lookup
from mgx_mlir.text.running import joined
from mgx_mlir.text.stops import Stops
from tests.text.fake import WORDS, Fake, Letters


def engine(**options: Any) -> Engine:
    return Engine(Fake(), Letters, **{"chunk": 4, **options})


def requests(count: int) -> list[Request]:
    rng = np.random.default_rng(count)
    return [
        Request(
            rng.integers(0, WORDS, 1 + 3 * i).tolist(), int(rng.integers(1, 20)),
            Sampling(
                0.9 * (i % 3), seed=i, repetition_penalty=1 + 0.1 * (i % 2),
                frequency_penalty=0.6 * (i % 4 == 1), presence_penalty=-1.1 * (i % 4 == 2),
                logit_bias={i: 2.5, WORDS - 1: -100} if i % 4 > 1 else {},
            ),
        )
        for i in range(count)
    ]  # fmt: skip


def alone(request: Request) -> list[int]:
    """The tokens of a request without an engine."""
    from mgx_mlir.text.sampling import choose

    tokens, decoder = list(request.tokens), Fake(1)
    for place in range(request.max_new_tokens):
        logits = decoder.prefill(0, tokens, 0)
        tokens.append(choose(logits, request.sampling, place, tokens))
    return tokens[len(request.tokens) :]


@pytest.mark.parametrize("chunk", [4, 16, 128])
@pytest.mark.parametrize("threaded", [False, True])
def test_in_a_batch_as_alone(threaded: bool, chunk: int) -> None:
    """Twelve requests over three slots: they wait, join and leave."""
    with engine(chunk=chunk) as e:
        if threaded:
            e.start()
        handles = [e.submit(r) for r in requests(12)]
        for handle in handles:
            assert [p.token for p in handle] == alone(handle.request)
            assert handle.finish_reason == "length"
        kinds = [count for kind, count in e.decoder.computed if kind == "decode"]  # type: ignore[attr-defined]
        assert max(kinds) == 3


def test_a_prompt_is_computed_in_chunks_between_steps() -> None:
    with engine() as e:
        first = e.submit(Request([1], 20))
        next(first)
        e.submit(Request(list(range(12)), 1))
        e.decoder.computed.clear()  # type: ignore[attr-defined]
        for _ in range(3):
            e.step()
        assert e.decoder.computed == [  # type: ignore[attr-defined]
            ("write", 4), ("decode", 1), ("write", 4), ("decode", 1), ("prefill", 4), ("decode", 1),
        ]  # fmt: skip


def computed(e: Engine) -> list[tuple[str, int]]:
    return e.decoder.computed  # type: ignore[attr-defined]


def test_prompts_of_similar_lengths_are_computed_together() -> None:
    """Two of three tokens and one of two, as three of three; others of one slot alone."""
    prompts = [[1, 2, 3], [4, 5, 6], [7, 8]]
    with engine(chunk=9) as e:
        handles = [e.submit(Request(p, 4)) for p in prompts]
        e.step()
        assert computed(e) == [("together", 9), ("decode", 3)]
        for handle in handles:
            assert [p.token for p in handle] == alone(handle.request)
        assert e.prompt_tokens == 8
        # two of them have cached rows, and the third waits for a chunk of its own
        computed(e).clear()
        again = [e.submit(Request([*p, 9, 9, 9, 9], 4)) for p in prompts]
        e.step()
        assert computed(e) == [("together", 8), ("decode", 2)]
        for handle in again:
            assert [p.token for p in handle] == alone(handle.request)
        assert [h.cached_tokens for h in again] == [3, 3, 2]


def test_prompts_join_one_that_runs() -> None:
    """Slots that follow the running ones are taken, although they are not the next free ones."""
    with engine(chunk=64) as e:
        first = [e.submit(Request([30 + i], n)) for i, n in enumerate((1, 30, 1))]
        e.step()
        later = [e.submit(Request([i, 3, 5], 6)) for i in range(2)]
        for handle in (*later, *first):
            assert [p.token for p in handle] == alone(handle.request)
        assert ("together", 6) in computed(e)


def test_an_answer_that_cannot_begin_ends_alone() -> None:
    class Nothing:
        complete = False

        def begin(self) -> Nothing:
            return self

        def allowed(self) -> Any:
            return np.zeros(WORDS, bool)

        def accept(self, token: int) -> None:
            raise AssertionError

    with engine(chunk=64) as e:
        wrong, right = e.submit(Request([1], 5, constraint=Nothing())), e.submit(Request([2], 5))
        assert [p.token for p in right] == alone(right.request)
        assert computed(e)[0] == ("together", 2)
        with pytest.raises(UsageError, match="allows no token"):
            next(wrong)


def test_prompts_that_are_computed_with_the_oldest() -> None:
    """Padding of each costs less than a call, and no padding is behind the last row."""
    assert joined([(0, 5), (0, 5), (0, 4)], 15, 2, 64) == [0, 1, 2]
    assert joined([(0, 5), (0, 5), (0, 4)], 14, 2, 64) == [0, 1]
    assert joined([(0, 5), (0, 3), (0, 4)], 15, 2, 64) == [0, 2]
    assert joined([(0, 4), (0, 4), (0, 5)], 15, 2, 64) == [0, 1]  # two would be padded
    assert joined([(0, 4), (0, 4), (0, 5)], 15, 3, 64) == [0, 1, 2]
    assert joined([(60, 4), (0, 5)], 15, 3, 64) == [0]
    assert joined([(59, 4), (0, 5)], 15, 3, 64) == [0, 1]
    assert joined([(0, 5), (0, 5)], 15, 0, 64) == [0]
    assert joined([(0, 200), (0, 200)], 128, 6, 1024) == [0]


def test_the_next_turn_computes_new_tokens_alone() -> None:
    with engine() as e:
        first = e.submit(Request([1, 2, 3, 4, 5], 6))
        answer = [p.token for p in first]
        turn = Request([1, 2, 3, 4, 5, *answer, 7, 8], 4)
        second = e.submit(turn)
        assert [p.token for p in second] == alone(turn)
        assert second.cached_tokens == 10  # the last token of an answer has no row yet
        other = Request([1, 2, 3, 9], 3)  # a chat that shares its beginning only
        third = e.submit(other)
        assert [p.token for p in third] == alone(other)
        assert third.cached_tokens == 3
        again = e.submit(turn)  # the first chat is still in the cache
        assert [p.token for p in again] == alone(turn)
        assert again.cached_tokens == len(turn.tokens) - 1


def test_stops() -> None:
    tokens = alone(Request([5], 12))
    text = "".join(chr(ord("A") + t) for t in tokens)
    with engine() as e:
        stop = text[4:7]
        handle = e.submit(Request([5], 12, stop=("zzzz", stop)))
        assert handle.text() == text[: text.index(stop)]
        assert handle.finish_reason == "stop"
    with engine(stop_tokens=frozenset([tokens[3]])) as e:
        handle = e.submit(Request([5], 12))
        assert handle.text() == text[: tokens.index(tokens[3])]
        assert handle.finish_reason == "stop"


@pytest.mark.parametrize("drafter", [None, Lookup()])
def test_an_answer_has_its_least_tokens(drafter: Any) -> None:
    """A token that ends it is not chosen before, alone, drawn, and beside others."""
    ends = frozenset(range(0, WORDS, 2))  # half of all
    for sampling in (Sampling(), Sampling(1.1, seed=4)):
        with engine(stop_tokens=ends, drafter=drafter) as e:
            rows = [Request([5, i, 5], 12, sampling, min_new_tokens=n)
                    for i, n in enumerate((0, 1, 7, 12, 20))]  # fmt: skip
            handles = [e.submit(r) for r in rows]
            for row, handle in zip(rows, handles, strict=True):
                handle.text()
                least = min(row.min_new_tokens, 12)
                assert not ends & set(handle.tokens[:least])
                assert least <= len(handle.tokens) <= 12
                assert (handle.finish_reason == "stop") == (handle.tokens[-1] in ends)
            assert any(h.finish_reason == "stop" for h in handles)


def test_a_stop_string_across_pieces() -> None:
    stops = Stops(["end", "now"])
    assert [stops.add(t) for t in ("an e", "n", "ough e", "nd more")] == [
        ("an ", False), ("", False), ("enough ", False), ("", True),
    ]  # fmt: skip
    assert Stops(["ab"]).rest() == ""
    held = Stops(["abc"])
    assert held.add("xab") == ("x", False)
    assert held.rest() == "ab"


def test_scores_are_those_of_the_model() -> None:
    with engine() as e:
        piece = next(e.submit(Request([3, 4], 2, Sampling(2.0, seed=1), logprobs=3)))
        logits = Fake(1).prefill(0, [3, 4], 0).astype(float)
        want = logits - np.log(np.exp(logits).sum())
        assert piece.logprob == pytest.approx(want[piece.token])
        assert [t for t, _ in piece.top] == np.argsort(-want)[:3].tolist()


def test_scores_of_a_prompt() -> None:
    """In chunks of four, beside another answer, and though the cache has the prompt."""
    prompt = [3, 4, 9, 1, 0, 7, 7, 2, 5]
    with engine() as e:
        other = e.submit(Request([1], 9))
        next(other)
        for _ in range(2):
            handle = e.submit(Request(prompt, 3, logprobs=2, score_prompt=True))
            assert [p.token for p in handle] == alone(handle.request)
            assert handle.cached_tokens == 0
            assert len(handle.prompt_scores) == 8
            for i, (logprob, top) in enumerate(handle.prompt_scores, 1):
                logits = Fake(1).prefill(0, prompt[:i], 0).astype(float)
                want = logits - np.log(np.exp(logits).sum())
                assert logprob == pytest.approx(want[prompt[i]])
                assert [t for t, _ in top] == np.argsort(-want)[:2].tolist()
        assert [p.token for p in other] == alone(other.request)[1:]
    with pytest.raises(UsageError, match="score_prompt expected a number of logprobs"):
        Request([1], score_prompt=True)


def test_cancelled_answers_leave() -> None:
    with engine() as e:
        running, kept = e.submit(Request([1], 30)), e.submit(Request([2], 5))
        waiting = [e.submit(Request([3], 30)) for _ in range(3)]
        next(running)
        for handle in (running, *waiting):
            handle.cancel()
        assert [p.token for p in kept] == alone(kept.request)
        for handle in (running, *waiting):
            list(handle)
            assert handle.finish_reason == "cancelled"
        assert (e.active, e.waiting) == (0, 0)


def test_a_failed_run_ends_its_answers() -> None:
    with engine() as e:
        handle = e.submit(Request([1, 2], 9))
        next(handle)
        e.decoder.decode = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        with pytest.raises(ZeroDivisionError):
            list(handle)
        assert handle.finish_reason == "error"
        del e.decoder.decode
        again = e.submit(Request([1, 2], 9))
        assert [p.token for p in again] == alone(again.request)
        assert again.cached_tokens == 0


def test_a_full_cache_ends_an_answer() -> None:
    with engine() as e:
        handle = e.submit(Request(list(range(30)), 100))
        assert len(list(handle)) == 64 - 30
        assert handle.finish_reason == "length"
        with pytest.raises(UsageError, match="64 tokens"):
            e.submit(Request([1] * 64))
    with pytest.raises(UsageError, match="closed"):
        e.submit(Request([1]))
    with pytest.raises(
        UsageError, match="no token; max_new_tokens expected an integer, 1 or more, got 0"
    ):
        Request([], 0)


def test_threads_that_iterate_answers_share_steps() -> None:
    """Each runs steps while the others wait, and none of them waits for another's end."""
    many, gate = 40, threading.Barrier(3)

    class Noted(Fake):
        def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> np.ndarray:
            time.sleep(0.001)
            return super().decode(tokens, starts)

    def answered(seed: int) -> tuple[list[int], list[float]]:
        request = Request([seed, 3, 5], many, Sampling(0.9 * (seed % 2), seed=seed))
        gate.wait(30)
        found, times = list[int](), list[float]()
        for piece in e.submit(request):
            found.append(piece.token)
            times.append(time.monotonic())
        assert found == alone(request)
        return found, times

    with Engine(Noted(), Letters) as e, ThreadPoolExecutor(3) as pool:
        rows = list(pool.map(answered, range(3)))
        assert e.steps < 2 * many
        first = min(times[-1] for _, times in rows)
        for _, times in rows:
            assert sum(t < first for t in times) > many // 2


def test_a_thread_goes_on_where_another_stops() -> None:
    """An answer that its caller leaves does not hold up another's."""
    left, begun = threading.Event(), threading.Event()
    with engine() as e:
        first = e.submit(Request([1], 30))

        def take_two() -> None:
            next(first)
            begun.set()
            next(first)
            left.set()

        caller = threading.Thread(target=take_two, daemon=True)
        caller.start()
        assert begun.wait(30)
        second = e.submit(Request([2], 20))
        assert [p.token for p in second] == alone(second.request)
        assert left.wait(30)
        caller.join()
        assert [p.token for p in first] == alone(first.request)[2:]


def test_a_queue_has_its_limit() -> None:
    with engine(max_waiting=2) as e:
        for _ in range(2):
            e.submit(Request([1], 2))
        with pytest.raises(UsageError, match="2 requests are waiting"):
            e.submit(Request([1], 2))


def test_who_submits_or_cancels_does_not_wait_for_a_step() -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow(Fake):
        def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> np.ndarray:
            begun.set()
            assert go.wait(30)
            return super().decode(tokens, starts)

    with Engine(Slow(), Letters).start() as e:
        told = []
        e.listeners.append(lambda: told.append(1))
        first = e.submit(Request([1], 9))
        assert begun.wait(30)
        others = []

        def submit() -> None:
            others.append(e.submit(Request([2], 1)))
            first.cancel()

        caller = threading.Thread(target=submit, daemon=True)
        caller.start()
        caller.join(10)
        waited = caller.is_alive()
        go.set()
        assert not waited
        assert len(list(others[0])) == 1
        assert first.finish_reason == "cancelled"
        assert told


def test_a_prompt_is_computed_where_its_answer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are moved are those of earlier, short answers; a prompt's are held once."""
    moved: list[int] = []
    swap = Fake.swap

    def seen(self: Fake, a: int, b: int, rows: int) -> None:
        moved.append(rows)
        swap(self, a, b, rows)

    monkeypatch.setattr(Fake, "swap", seen)
    with Engine(Fake(), Letters, chunk=8) as e:
        short = [list(e.submit(Request([i, 1], 2))) for i in (3, 4)]
        long = Request([5, *range(8, 38)], 3)
        alone = [p.token for p in e.submit(long)]
        assert max(moved) <= 4
        handles = [e.submit(Request([6, 2], 9)), e.submit(long)]
        assert [p.token for p in handles[1]] == alone
        list(handles[0])
    assert len(short) == 2
    decoder = e.decoder
    assert isinstance(decoder, Fake)
    assert (decoder.cache[0, :3] >= 0).all()

"""Beam search: in the engine without a model, and the search itself against transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mgx_mlir import text
from mgx_mlir.core.errors import UsageError
from mgx_mlir.text import Engine, Request, Sampling
from mgx_mlir.text.beams import Beams, BeamSearch, moves
from tests.text.fake import WORDS, Fake, Letters, Tokenizer

Logits = Callable[[list[int]], np.ndarray]


def searched(
    logits: Logits, prompt: Sequence[int], beams: Beams, ends: frozenset[int], most: int,
    penalty: float = 1.0,
) -> list[int]:  # fmt: skip
    """The answer of a search whose logits are computed anew for each sequence."""
    search = BeamSearch(beams, ends, most)
    while not search.done:
        rows = [logits([*prompt, *h.tokens]) for h in search.running]
        search.step(np.array(rows), prompt, penalty)
    return list(search.best.tokens)


def alone(request: Request, ends: frozenset[int] = frozenset()) -> list[int]:
    assert request.beams is not None
    decoder = Fake(1)
    most = min(request.max_new_tokens, decoder.rows - len(request.tokens))
    return searched(
        lambda tokens: decoder.prefill(0, tokens, 0), request.tokens, request.beams, ends, most,
        request.sampling.repetition_penalty,
    )  # fmt: skip


def engine(slots: int, ends: Sequence[int] = ()) -> Engine:
    return Engine(Fake(slots), Letters, chunk=4, stop_tokens=frozenset(ends))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("ends", [(), (3, 17)])
def test_in_a_batch_as_alone(count: int, ends: Sequence[int]) -> None:
    """Searches and other answers wait, join and leave; each has its own tokens."""
    rng = np.random.default_rng(count)
    requests = [
        Request(
            rng.integers(0, WORDS, 1 + 4 * i).tolist(), int(rng.integers(1, 14)),
            Sampling(repetition_penalty=1 + 0.1 * (i % 2)),
            beams=Beams(count, float(rng.uniform(-1, 2)), bool(i % 3 == 1)) if i % 2 else None,
        )
        for i in range(9)
    ]  # fmt: skip
    with engine(5) as e:
        once = [[p.token for p in e.submit(r)] for r in requests]
        for request, tokens in zip(requests, once, strict=True):
            if request.beams is not None:
                assert tokens == alone(request)
    with engine(5, ends) as e:
        handles = [e.submit(r) for r in requests]
        for handle, request in zip(handles, requests, strict=True):
            tokens = [p.token for p in handle]
            if request.beams is not None:
                assert tokens == alone(request, frozenset(ends))
                assert (tokens[-1] in ends) == (handle.finish_reason == "stop")
        assert (e.active, e.waiting) == (0, 0)


def test_slots_are_free_again() -> None:
    """After an end, a cancellation at any step, and a failure."""
    request = Request([1, 2, 3, 4, 5, 6, 7], 6, beams=Beams(3))
    reasons = []
    with engine(4) as e:
        for steps in range(9):
            handle, other = e.submit(request), e.submit(Request([8, 9], 5))
            for _ in range(steps):
                e.step()
            handle.cancel()
            want = [p.token for p in other]
            list(handle)
            reasons.append(handle.finish_reason)
            assert e.active == 0
            again = e.submit(other.request)
            assert [p.token for p in again] == want
        assert reasons[:3] == ["cancelled"] * 3
        assert reasons[-1] == "length"
        held = e.submit(Request([30], 9))
        want = [p.token for p in held]
        for good in range(4):  # copies before one that fails: of the beginning, then of beams
            left, copy = iter(range(good)), Fake.copy

            def fails(*args: int, left: Any = left, copy: Any = copy) -> None:
                if next(left, None) is None:
                    raise ArithmeticError
                copy(e.decoder, *args)

            e.decoder.copy = fails  # type: ignore[method-assign, assignment]
            handle = e.submit(Request([20, 21], 6, beams=Beams(3)))
            with pytest.raises(ArithmeticError):
                list(handle)
            assert (e.active, handle.finish_reason) == (0, "error")
            del e.decoder.copy
            again = e.submit(held.request)
            assert [p.token for p in again] == want
            assert [p.token for p in e.submit(request)] == alone(request)


def test_searches_wait_for_enough_slots() -> None:
    with engine(3) as e:
        first, second = (e.submit(Request([i], 8, beams=Beams(2))) for i in (1, 2))
        e.step()
        assert (e.active, e.waiting) == (2, 1)
        for handle in (first, second):
            assert [p.token for p in handle] == alone(handle.request)
        with pytest.raises(UsageError, match=r"^4 beams need a slot each"):
            e.submit(Request([1], 8, beams=Beams(4)))
        handle = e.submit(
            Request([1], 8, beams=Beams(3)),
        )
        assert [p.token for p in handle] == alone(handle.request)


def test_a_full_cache_ends_a_search() -> None:
    with engine(2) as e:
        handle = e.submit(Request(list(range(30)), 100, beams=Beams(2)))
        tokens = [p.token for p in handle]
        assert len(tokens) == 64 - 30
        assert tokens == alone(handle.request)
        assert handle.finish_reason == "length"


def test_caches_move_once() -> None:
    assert moves([0, 0, 0], 3) == [0, 1, 2]
    assert moves([2, 1, 0], 3) == [2, 1, 0]
    assert moves([1, 1, 2], 3) == [1, 0, 2]
    assert moves([2, 2, 2], 3) == [2, 0, 1]


def test_options() -> None:
    model = text.TextModel(Tokenizer(), Fake())  # type: ignore[arg-type]
    whole = model.generate("AB", max_new_tokens=5, num_beams=2)
    assert "".join(model.generate("AB", max_new_tokens=5, num_beams=2, stream=True)) == whole
    assert len(whole) == 5
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"num_beams": 0}, "num_beams expected an integer, 1 or more, got 0"),
        ({"num_beams": 2.0}, "num_beams expected"),
        ({"num_beams": 2, "length_penalty": "1"}, "length_penalty expected a number -50 to 50"),
        ({"num_beams": 2, "early_stopping": "yes"}, "early_stopping expected True, False or"),
        ({"length_penalty": 2.0}, "are settings of a beam search"),
        ({"num_beams": 2, "temperature": 1.0, "stop": "x", "logprobs": 1},
         "beams take no temperature; beams take no stop strings; beams take no logprobs"),
        ({"num_beams": 30}, "30 beams need a slot each"),
    ]  # fmt: skip
    for options, message in wrong:
        with pytest.raises(UsageError, match=message):
            model.generate("A", **options)
    with pytest.raises(UsageError, match="20 beams consider 60 tokens, and the model has 40"):
        BeamSearch(Beams(20), frozenset([1, 2]), 3).step(np.zeros((1, 40)))


def test_the_search_of_transformers() -> None:
    """Drawn settings and models: the same tokens, without our decoder."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    ended = 0
    for draw in range(24):
        torch.manual_seed(draw)
        model = transformers.LlamaForCausalLM(config).eval()
        for weights in model.parameters():
            weights.data *= 8
        ends = [int(t) for t in rng.choice(50, 1 + draw % 2, replace=False)]
        with torch.no_grad():
            model.lm_head.weight[ends] *= 3
        prompt = rng.integers(0, 50, 1 + draw % 5).tolist()
        early: Any = [False, True, "never"][draw % 3]
        beams = Beams(2 + draw % 4, float(rng.choice([-1, 0, 0.5, 1, 2])), early)
        penalty, most = float(rng.choice([1, 1.3])), 3 + draw % 13

        def logits(tokens: list[int], model: Any = model) -> np.ndarray:
            with torch.no_grad():
                return model(torch.tensor([tokens])).logits[0, -1].numpy()

        with torch.no_grad():
            found = model.generate(
                torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)),
                max_new_tokens=most, do_sample=False, pad_token_id=ends[0],
                num_beams=beams.count, length_penalty=beams.length_penalty, eos_token_id=ends,
                early_stopping=beams.early_stopping, repetition_penalty=penalty,
            )  # fmt: skip
        want = found[0, len(prompt) :].tolist()
        size = next((i + 1 for i, t in enumerate(want) if t in ends), most)  # behind it is padding
        got = searched(logits, prompt, beams, frozenset(ends), most, penalty)
        assert got == want[:size], (draw, beams)
        ended += got[-1] in ends
    assert 6 <= ended <= 23  # both ends of an answer

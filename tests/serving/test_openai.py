"""The server of text, by HTTP, over a decoder without a model."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("h11")
pytest.importorskip("prometheus_client")
from mgx_mlir.integrations.openai.server import TextServer
from mgx_mlir.integrations.serve.metrics import TextMetrics
from mgx_mlir.integrations.serve.service import ServiceSettings, serve
from mgx_mlir.integrations.v2.front import Policy
from mgx_mlir.integrations.v2.messages import Limits
from mgx_mlir.text import Sampling, TextModel
from tests.text.fake import WORDS, Fake, Tokenizer

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
END = WORDS - 1


class Gate(Fake):
    """A decoder whose steps wait while `go` is not set, and fail where `broken` is."""

    def __init__(self, slots: int = 3, rows: int = 64, words: int = WORDS) -> None:
        super().__init__(slots, rows, words)
        self.go, self.broken = threading.Event(), False
        self.go.set()

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> np.ndarray:
        assert self.go.wait(30)
        if self.broken:
            raise KeyError("secret")
        return super().decode(tokens, starts)


class Service:
    """A server in a thread, and requests to it."""

    def __init__(self, tokenizer: Tokenizer | None = None, rows: int = 64, **policy: Any) -> None:
        letters = tokenizer or Tokenizer()
        self.decoder = Gate(rows=rows, words=letters.size)
        ends = frozenset([letters.size - 1])
        self.model = TextModel(letters, self.decoder, {}, ends)  # type: ignore[arg-type]
        own = Policy(Limits(body=1 << 16), **policy)
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        listening = threading.Event()
        metrics = TextMetrics()

        def ready(port: int) -> None:
            self.port = port
            listening.set()

        def run() -> None:
            server = TextServer(self.model, "fake", own, metrics)
            settings = ServiceSettings(port=0, policy=own)
            self._loop.run_until_complete(
                serve(server, metrics, settings, ready=ready, ended=self._ended)
            )

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert listening.wait(30)

    def end(self) -> None:
        self.decoder.go.set()
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def open(self, path: str, row: Any = None, **headers: str) -> http.client.HTTPResponse:
        own = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = None if row is None else row if isinstance(row, bytes) else json.dumps(row)
        heads = {"content-type": "application/json",
                 **{k.replace("_", "-"): v for k, v in headers.items()}}  # fmt: skip
        own.request("GET" if row is None else "POST", path, body, heads)
        return own.getresponse()

    def ask(self, path: str, row: Any = None, **headers: str) -> tuple[int, Any]:
        found = self.open(path, row, **headers)
        return found.status, json.loads(found.read())

    def events(self, path: str, row: dict[str, Any]) -> list[Any]:
        """The events of a stream, without its end."""
        found = self.open(path, {**row, "stream": True})
        assert found.getheader("content-type") == "text/event-stream"
        rows = [r for r in found.read().decode().split("\n\n") if r and not r.startswith(":")]
        if rows[-1] == "data: [DONE]":
            rows.pop()
        return [json.loads(r.removeprefix("data: ")) for r in rows]

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    made = Service()
    yield made
    made.end()


@pytest.fixture
def own() -> Iterator[Callable[..., Service]]:
    with contextlib.ExitStack() as ends:

        def make(**policy: Any) -> Service:
            made = Service(**policy)
            ends.callback(made.end)
            return made

        yield make


def expected(prompt: str, count: int, sampling: Sampling | None = None) -> str:
    """The text that the model alone gives; shorter where the token that ends it comes."""
    from mgx_mlir.text.sampling import choose

    tokens, decoder = Tokenizer().encode(prompt), Fake(1, 512)
    size = len(tokens)
    for place in range(count):
        logits = decoder.prefill(0, tokens, 0)
        token = choose(logits, sampling or Sampling(), place, tokens)
        if token == END:
            break
        tokens.append(token)
    return Tokenizer().decode(tokens[size:])


GREEDY = {"temperature": 0, "max_tokens": 12}
SEEDED = {"temperature": 0.8, "top_p": 0.9, "seed": 7, "max_tokens": 12}
DRAWN = Sampling(0.8, top_p=0.9, seed=7)


def test_fields_without_effect(shared: Service) -> None:
    """Hints and names that clients send beside a prompt."""
    more = {
        "user": "me", "metadata": {"a": "b"}, "service_tier": "auto", "safety_identifier": "x",
        "prompt_cache_key": "k", "prompt_cache_retention": "24h",
        "prediction": {"type": "content", "content": "guess"},
    }  # fmt: skip
    status, found = shared.ask(COMPLETIONS, {"prompt": "AAA", **GREEDY, **more})
    assert status == 200, found
    assert found["choices"][0]["text"] == expected("AAA", 12)


def test_a_completion(shared: Service) -> None:
    status, found = shared.ask(COMPLETIONS, {"model": "fake", "prompt": "AAA", **GREEDY})
    assert status == 200
    assert found["object"] == "text_completion"
    [choice] = found["choices"]
    assert choice["text"] == expected("AAA", 12)
    assert choice["finish_reason"] == "length"
    usage = found["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (
        3,
        12,
        15,
    )


def test_a_seed_repeats_itself(shared: Service) -> None:
    for _ in range(2):
        _, found = shared.ask(COMPLETIONS, {"prompt": "AAA", **SEEDED})
        assert found["choices"][0]["text"] == expected("AAA", 12, DRAWN)
    texts = {
        shared.ask(COMPLETIONS, {"prompt": "A", "max_tokens": 12})[1]["choices"][0]["text"]
        for _ in range(4)
    }
    assert len(texts) > 1


def test_penalties_and_biases(shared: Service) -> None:
    more = {"frequency_penalty": 1.5, "presence_penalty": -0.5, "logit_bias": {"3": 2, "5": -100}}
    sampling = replace(DRAWN, **{**more, "logit_bias": {3: 2, 5: -100}})  # type: ignore[arg-type]
    want = expected("AAA", 12, sampling)
    assert want != expected("AAA", 12, DRAWN)
    _, found = shared.ask(COMPLETIONS, {"prompt": "AAA", **SEEDED, **more})
    assert found["choices"][0]["text"] == want
    chat = {"messages": [{"role": "user", "content": "AAA"}], **SEEDED, **more}
    assert shared.ask(CHAT, chat)[1]["choices"][0]["message"]["content"] == want
    parts = [e["choices"][0]["delta"].get("content", "") for e in shared.events(CHAT, chat)]
    assert "".join(parts) == want


def test_prompts_and_choices(shared: Service) -> None:
    """Two prompts, one as tokens, three answers to each: the first has the seed itself."""
    row = {"prompt": ["AAA", "D"], "n": 3, "best_of": 3, "echo": True, **SEEDED}
    _, found = shared.ask(COMPLETIONS, row)
    texts = [c["text"] for c in found["choices"]]
    assert [c["index"] for c in found["choices"]] == list(range(6))
    assert texts[0] == "AAA" + expected("AAA", 12, DRAWN)
    assert texts[3] == "D" + expected("D", 12, DRAWN)
    assert len(set(texts)) == 6
    assert found["usage"]["prompt_tokens"] == 4
    _, tokens = shared.ask(COMPLETIONS, {"prompt": [0, 0, 0], **SEEDED})
    assert "AAA" + tokens["choices"][0]["text"] == texts[0]


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_a_stream_says_the_same(path: str, shared: Service) -> None:
    asked = {"prompt": "AAA"} if path == COMPLETIONS else {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "AA"}]},
                     {"role": "user", "content": "A"}]}  # fmt: skip
    row = {**asked, **SEEDED, "n": 2, "stream_options": {"include_usage": True}}
    events = shared.events(path, row)
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["prompt_tokens"] == 3
    texts, ends = ["", ""], [None, None]
    for event in events[:-1]:
        [choice] = event["choices"]
        i = choice["index"]
        part = choice["text"] if path == COMPLETIONS else choice["delta"].get("content", "")
        assert ends[i] is None
        texts[i] += part
        ends[i] = choice["finish_reason"]
    del row["stream_options"]
    _, whole = shared.ask(path, row)
    wanted = [c["text"] if path == COMPLETIONS else c["message"]["content"]
              for c in whole["choices"]]  # fmt: skip
    assert texts == wanted
    assert texts[0] == expected("AAA", 12, DRAWN)
    assert ends == [c["finish_reason"] for c in whole["choices"]]


def test_an_answer_stops(shared: Service) -> None:
    text = expected("AAA", 12)
    stop = text[4:6]
    _, found = shared.ask(COMPLETIONS, {"prompt": "AAA", "stop": [stop, "??"], **GREEDY})
    [choice] = found["choices"]
    assert (choice["text"], choice["finish_reason"]) == (text[: text.index(stop)], "stop")


def test_log_probabilities(shared: Service) -> None:
    row = {"messages": [{"role": "user", "content": "AAA"}], "logprobs": True, "top_logprobs": 2}
    _, found = shared.ask(CHAT, {**row, **GREEDY})
    [choice] = found["choices"]
    listed = choice["logprobs"]["content"]
    assert "".join(r["token"] for r in listed) == choice["message"]["content"]
    for r in listed:
        best, second = r["top_logprobs"]
        assert (best["token"], best["logprob"]) == (r["token"], r["logprob"])
        assert second["logprob"] <= best["logprob"] < 0
        assert bytes(r["bytes"]).decode() == r["token"]
    _, other = shared.ask(COMPLETIONS, {"prompt": "AAA", "logprobs": 2, **GREEDY})
    scores = other["choices"][0]["logprobs"]
    assert scores["token_logprobs"] == [r["logprob"] for r in listed]
    assert scores["text_offset"] == list(range(12))
    streamed = shared.events(CHAT, {**row, **GREEDY})
    assert [
        r for e in streamed if (s := e["choices"][0]["logprobs"]) for r in s["content"]
    ] == listed


def test_scores_of_a_prompt(shared: Service) -> None:
    """The tool lm-evaluation-harness reads them."""
    row = {"prompt": ["ABCA", [3, 4]], "echo": True, "logprobs": 2, **GREEDY, "max_tokens": 3}
    status, found = shared.ask(COMPLETIONS, row)
    assert status == 200, found
    for choice, prompt in zip(found["choices"], ("ABCA", "DE"), strict=True):
        scores = choice["logprobs"]
        assert "".join(scores["tokens"]) == choice["text"] == prompt + expected(prompt, 3)
        assert scores["text_offset"] == list(range(len(prompt) + 3))
        assert scores["token_logprobs"][0] is scores["top_logprobs"][0] is None
        for i in range(1, len(prompt)):
            logits = Fake(1).prefill(0, Tokenizer().encode(prompt[:i]), 0).astype(float)
            want = logits - np.log(np.exp(logits).sum())
            assert scores["token_logprobs"][i] == pytest.approx(want[ord(prompt[i]) - ord("A")])
            best = max(scores["top_logprobs"][i], key=scores["top_logprobs"][i].__getitem__)
            assert best == Tokenizer().decode([int(np.argmax(want))])


def test_ends_of_an_answer(shared: Service) -> None:
    """Fields of vLLM: its benchmarks ignore the end of an answer."""
    row = {"prompt": "AAA", "logit_bias": {str(END): 100}, "temperature": 0, "max_tokens": 5}
    _, found = shared.ask(COMPLETIONS, row)
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["usage"]["completion_tokens"] == 1
    _, found = shared.ask(COMPLETIONS, {**row, "ignore_eos": True})
    assert found["choices"][0]["finish_reason"] == "length"
    assert found["usage"]["completion_tokens"] == 5
    _, found = shared.ask(COMPLETIONS, {**row, "min_tokens": 3})
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["usage"]["completion_tokens"] == 4
    text = expected("AAA", 12)
    more = {"prompt": "AAA", "stop_token_ids": [ord(text[4]) - ord("A")], "logprobs": 0}
    _, found = shared.ask(COMPLETIONS, {**GREEDY, **more})
    [choice] = found["choices"]
    assert (choice["text"], choice["finish_reason"]) == (text[: text.index(text[4])], "stop")
    assert "".join(choice["logprobs"]["tokens"]) == choice["text"]


def test_values_of_the_template(shared: Service) -> None:
    chat = {"messages": [{"role": "developer", "content": "AA"}], **GREEDY}
    more = {"chat_template_kwargs": {"thinking": "A"}, "reasoning_effort": "low"}
    status, found = shared.ask(CHAT, {**chat, **more})
    assert status == 200, found
    assert found["choices"][0]["message"]["content"] == expected("AAA", 12)


WRONG: list[tuple[str, Any, int, str | None, str]] = [
    (COMPLETIONS, b"{", 400, None, "no JSON"),
    (COMPLETIONS, b"[]", 400, None, "expected an object"),
    (COMPLETIONS, b'{"prompt": "A", "prompt": "B"}', 400, None, "twice"),
    (COMPLETIONS, b"[" * 30000, 400, None, "nests too deep"),
    (COMPLETIONS, b" " * 70000, 413, None, "larger than 65536"),
    (COMPLETIONS, {}, 400, "prompt", "expected a 'prompt'"),
    (COMPLETIONS, {"prompt": ""}, 400, "prompt", "no token"),
    (COMPLETIONS, {"prompt": 5}, 400, "prompt", "1 to 128 texts"),
    (COMPLETIONS, {"prompt": ["A"] * 129}, 400, "prompt", "1 to 128 texts"),
    (COMPLETIONS, {"prompt": ["A", 5]}, 400, "prompt", "a text or tokens"),
    (COMPLETIONS, {"prompt": [WORDS]}, 400, "prompt", f"the token {WORDS}"),
    (COMPLETIONS, {"prompt": "A" * 64}, 400, "prompt", "64 tokens, the model takes 64"),
    (COMPLETIONS, {"prompt": "A", "model": "gpt-5"}, 404, "model", "does not exist"),
    (COMPLETIONS, {"prompt": "A", "max_tokens": 0}, 400, "max_tokens", "an integer 1 to"),
    (COMPLETIONS, {"prompt": "A", "max_tokens": True}, 400, "max_tokens", "an integer 1 to"),
    (COMPLETIONS, {"prompt": "A", "temperature": 3}, 400, "temperature", "0 to 2"),
    (COMPLETIONS, {"prompt": "A", "temperature": "1"}, 400, "temperature", "a number"),
    (COMPLETIONS, b'{"prompt": "A", "temperature": NaN}', 400, "temperature", "a number"),
    (COMPLETIONS, {"prompt": "A", "top_p": 0}, 400, "top_p", "above 0"),
    (COMPLETIONS, {"prompt": "A", "n": 65}, 400, "n", "65 answers"),
    (COMPLETIONS, {"prompt": "A", "stop": ["A"] * 17}, 400, "stop", "17 strings"),
    (COMPLETIONS, {"prompt": "A", "stop": [1]}, 400, "stop", "expected strings"),
    (COMPLETIONS, {"prompt": "A", "stream": 1}, 400, "stream", "true or false"),
    (COMPLETIONS, {"prompt": "A", "frequency_penalty": 3}, 400, "frequency_penalty", "-2 to 2"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "presence_penalty": -3}, 400,
     "presence_penalty", "-2 to 2"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": [1]}, 400, "logit_bias", "an object"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": {"A": 1}}, 400, "logit_bias", "tokens 0 to"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": {"-1": 1}}, 400, "logit_bias", "tokens 0 to"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": {str(WORDS): 1}}, 400, "logit_bias", "tokens 0 to"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": {"9" * 5000: 1}}, 400, "logit_bias", "tokens 0 to"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": {"0": 101}}, 400, "logit_bias", "-100 to 100"),
    (COMPLETIONS, {"prompt": "A", "logit_bias": {"0": True}}, 400, "logit_bias", "-100 to 100"),
    (COMPLETIONS, {"prompt": "A", "logprobs": 21}, 400, "logprobs", "0 to 20"),
    (COMPLETIONS, {"prompt": "A", "echo": True, "logprobs": 1, "stream": True}, 400, "echo",
     "not supported in a stream"),
    (COMPLETIONS, {"prompt": "A", "best_of": 2}, 400, "best_of", "expected 1"),
    (COMPLETIONS, {"prompt": "A", "stop_token_ids": [WORDS]}, 400, "stop_token_ids", "tokens 0 to"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "functions": [{}]}, 400, "functions",
     "use 'tools'"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "chat_template_kwargs": {"odd": 1}},
     400, "chat_template_kwargs", "does not read 'odd'"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "chat_template_kwargs": {"tools": 1}},
     400, "chat_template_kwargs", "does not read 'tools'"),
    ("/chat/completions", {}, 404, None, "expected one of /v1/completions, /v1/chat/completions"),
    (COMPLETIONS, {"prompt": "A", "stream_options": {}}, 400, "stream_options", "for streams"),
    (COMPLETIONS, {"prompt": "A", "odd": 1}, 400, "odd", "unknown fields: 'odd'"),
    (CHAT, {"messages": []}, 400, "messages", "not empty"),
    (CHAT, {"messages": ["A"]}, 400, "messages", "a 'role'"),
    (CHAT, {"messages": [{"role": "user"}]}, 400, "messages", "a text as 'content'"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages",
     "type 'text'"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "tools": [{}]}, 400, "tools",
     "takes no tools"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "tools": 5}, 400, "tools", "a list"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "tool_choice": "required"}, 400,
     "tool_choice", "expected 'tools'"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "response_format": {"type": "xml"}},
     400, "response_format", "json_schema"),
    (CHAT, {"messages": [{"role": "user", "content": "A"}], "top_logprobs": 1}, 400, "top_logprobs",
     "'logprobs' to be true"),
    ("/v1/embeddings", {}, 404, None, "unknown path"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "row", "status", "param", "why"), WRONG)
def test_wrong_requests(
    path: str, row: Any, status: int, param: str | None, why: str, shared: Service
) -> None:
    got, found = shared.ask(path, row)
    error = found["error"]
    assert (got, error["type"], error["param"]) == (status, "invalid_request_error", param)
    assert why in error["message"]


def test_what_there_is(shared: Service) -> None:
    assert shared.ask("/health") == (200, {"status": "ok"})
    _, found = shared.ask("/v1/models")
    assert [m["id"] for m in found["data"]] == ["fake"]
    assert shared.ask("/v1/models/fake")[1] == found["data"][0]
    status, found = shared.ask("/v1/models/other")
    assert (status, found["error"]["code"]) == (404, "model_not_found")
    status, found = shared.ask(COMPLETIONS)
    assert (status, found["error"]["type"]) == (405, "invalid_request_error")


def test_pages_of_other_origins_and_bad_http(shared: Service) -> None:
    status, found = shared.ask(COMPLETIONS, {"prompt": "A"}, origin="https://evil.example")
    assert (status, found["error"]["type"]) == (403, "permission_error")
    status, _ = shared.ask(COMPLETIONS, {"prompt": "A"}, content_type="text/plain")
    assert status == 415
    status, found = shared.ask("/health", host="a b")
    assert (status, found["error"]["type"]) == (400, "invalid_request_error")


def test_metrics(own: Callable[..., Service]) -> None:
    service = own()
    service.ask(COMPLETIONS, {"prompt": "AAA", **GREEDY})
    service.ask(COMPLETIONS, {"prompt": "AAA", **GREEDY})
    text = service.open("/metrics").read().decode()

    def of(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else -1.0

    assert of('mgx_requests_total{model="fake",status="200"}') == 2
    assert of('mgx_tokens_total{kind="answer",model="fake"}') == 24
    assert of('mgx_tokens_total{kind="prompt",model="fake"}') == 6
    assert of('mgx_tokens_total{kind="cached",model="fake"}') == 2
    assert of('mgx_first_token_seconds_count{model="fake"}') == 2
    assert of('mgx_now{what="requests"}') == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_its_answer(stream: bool, own: Callable[..., Service]) -> None:
    service = own()
    service.decoder.go.clear()
    held = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    body = json.dumps({"prompt": "AAA", "max_tokens": 60, "stream": stream, "temperature": 0})
    held.request("POST", COMPLETIONS, body, {"content-type": "application/json"})
    engine = service.model.engine()
    service.until(lambda: engine.active == 1)
    assert held.sock is not None
    held.sock.close()
    time.sleep(0.05)
    # each token is a write, of which the second is refused
    service.decoder.go.set()
    service.until(lambda: engine.active == 0)
    text = service.open("/metrics").read().decode()
    assert 'mgx_now{what="requests"} 0.0' in text
    if stream:
        assert engine.decoded_tokens < 59


def test_back_pressure(own: Callable[..., Service]) -> None:
    service = own(queue=2)
    service.decoder.go.clear()
    answers: list[tuple[int, Any]] = []

    def ask() -> None:
        answers.append(service.ask(COMPLETIONS, {"prompt": "AB", "n": 2, **GREEDY}))

    first = threading.Thread(target=ask)
    first.start()
    service.until(lambda: service.model.engine().active == 2)
    found = service.open(COMPLETIONS, {"prompt": "A"})
    assert (found.status, found.getheader("retry-after")) == (429, "1")
    assert json.loads(found.read())["error"]["type"] == "rate_limit_error"
    service.decoder.go.set()
    first.join(30)
    assert answers[0][0] == 200
    assert service.ask(COMPLETIONS, {"prompt": "A"})[0] == 200


def test_answers_that_take_too_long(own: Callable[..., Service]) -> None:
    service = own(run_timeout=0.1)
    service.decoder.go.clear()
    status, found = service.ask(COMPLETIONS, {"prompt": "AB", **GREEDY})
    assert (status, found["error"]["type"]) == (504, "server_error")
    service.decoder.go.set()
    service.until(lambda: service.model.engine().active == 0)
    service.decoder.go.clear()
    [*_, last] = service.events(COMPLETIONS, {"prompt": "AB", **GREEDY})
    assert "longer than 0.1 s" in last["error"]["message"]
    waiting = own(wait_timeout=0.1)
    waiting.decoder.go.clear()
    engine = waiting.model.engine()
    for _ in range(3):
        engine.submit(waiting.model.request("A", max_new_tokens=9))
    waiting.until(lambda: engine.active == 3)
    found = waiting.open(COMPLETIONS, {"prompt": "AB", **GREEDY})
    assert (found.status, found.getheader("retry-after")) == (503, "1")


def test_a_model_that_fails(own: Callable[..., Service]) -> None:
    service = own()
    service.decoder.broken = True
    status, found = service.ask(COMPLETIONS, {"prompt": "AB", **GREEDY})
    assert (status, found["error"]["message"]) == (500, "the model failed: KeyError")
    [*_, last] = service.events(CHAT, {"messages": [{"role": "user", "content": "A"}], **GREEDY})
    assert last["error"]["message"] == "the model failed: KeyError"
    service.decoder.broken = False
    assert service.ask(COMPLETIONS, {"prompt": "AB", **GREEDY})[0] == 200

"""The server of text as the client of OpenAI sees it. Slow: it needs the package `openai`."""

# packages that need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serving.test_openai import DRAWN, GREEDY, SEEDED, Service, expected

pytestmark = pytest.mark.slow
openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service(queue=4)
    yield made
    made.end()


@pytest.fixture(scope="module")
def client(service: Service) -> Any:
    url = f"http://127.0.0.1:{service.port}/v1"
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


def test_models(client: Any) -> None:
    assert [m.id for m in client.models.list()] == ["fake"]
    assert client.models.retrieve("fake").owned_by == "mgx_mlir"


def test_completions(client: Any) -> None:
    found = client.completions.create(model="fake", prompt="AAA", logprobs=2, **SEEDED)
    assert found.choices[0].text == expected("AAA", 12, DRAWN)
    assert found.usage.total_tokens == 15
    assert len(found.choices[0].logprobs.tokens) == 12
    parts = client.completions.create(model="fake", prompt="AAA", stream=True, **SEEDED)
    assert "".join(p.choices[0].text for p in parts) == found.choices[0].text


def test_chat(client: Any) -> None:
    messages = [{"role": "system", "content": "A"}, {"role": "user", "content": "AA"}]
    how = {"model": "fake", "messages": messages, "logprobs": True, "top_logprobs": 3, **SEEDED}
    found = client.chat.completions.create(n=2, **how)
    assert found.choices[0].message.content == expected("AAA", 12, DRAWN)
    assert len(found.choices) == 2
    assert len(found.choices[1].logprobs.content[0].top_logprobs) == 3
    how["stream_options"] = {"include_usage": True}
    parts = list(client.chat.completions.create(stream=True, **how))
    assert parts[0].choices[0].delta.role == "assistant"
    text = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    assert text == found.choices[0].message.content
    assert parts[-1].usage.completion_tokens == 12


def test_errors(client: Any, service: Service) -> None:
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.completions.create(model="other", prompt="A")
    with pytest.raises(openai.BadRequestError, match="temperature") as e:
        client.completions.create(model="fake", prompt="A", temperature=9)
    assert e.value.param == "temperature"
    service.decoder.go.clear()
    held = service.open("/v1/completions", {"prompt": "A", "n": 4, "stream": True, **GREEDY})
    try:
        with pytest.raises(openai.RateLimitError):
            client.completions.create(model="fake", prompt="A")
    finally:
        service.decoder.go.set()
        held.read()


def test_a_stream_that_is_closed_ends_the_answer(client: Any, service: Service) -> None:
    engine = service.model.engine()
    service.until(lambda: engine.active == 0)
    service.decoder.go.clear()
    stream = client.completions.create(
        model="fake", prompt="AAA", stream=True, max_tokens=60, temperature=0
    )
    service.until(lambda: engine.active == 1)
    stream.close()
    before = engine.decoded_tokens
    service.decoder.go.set()
    service.until(lambda: engine.active == 0)
    assert engine.decoded_tokens - before < 59


def test_what_the_client_sends_by_itself(client: Any) -> None:
    """Fields that other servers take go through `extra_body`."""
    found = client.completions.with_raw_response.create(
        model="fake", prompt="AAA", user="me", extra_body={"top_k": 1}, max_tokens=12
    )
    assert json.loads(found.text)["choices"][0]["text"] == expected("AAA", 12)


def test_schemas_and_tools() -> None:
    pytest.importorskip("llguidance")
    from tests.text.fake import HERMES, PRINTED, Tokenizer
    from tests.text.test_grammar import SCHEMA, right, tool

    own = Service(Tokenizer(PRINTED, HERMES), 300)
    try:
        client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{own.port}/v1", api_key="none", max_retries=0
        )
        how: Any = {"model": "fake", "messages": [{"role": "user", "content": "a"}], "seed": 3}
        form = {"type": "json_schema", "json_schema": {"name": "pet", "schema": SCHEMA}}
        found = client.chat.completions.create(response_format=form, **how)
        assert right(found.choices[0].message.content)
        how |= {"tools": [tool("f"), tool("g")], "tool_choice": "required",
                "parallel_tool_calls": False}  # fmt: skip
        found = client.chat.completions.create(**how)
        [call] = found.choices[0].message.tool_calls
        assert right(call.function.arguments)
        assert found.choices[0].finish_reason == "tool_calls"
        with client.chat.completions.stream(**how) as stream:
            final = stream.get_final_completion()
        [streamed] = final.choices[0].message.tool_calls
        assert streamed.function.arguments == call.function.arguments
        assert streamed.function.name == call.function.name
        tools: Any = [{"type": "function", **tool(name)["function"]} for name in "fg"]
        with client.responses.stream(
            model="fake", input="a", tools=tools, tool_choice="required", extra_body={"seed": 3}
        ) as stream:
            [item] = stream.get_final_response().output
        assert right(item.arguments)
    finally:
        own.end()


def test_responses(client: Any) -> None:
    how: Any = {"model": "fake", "input": "AAA", "max_output_tokens": 12, "temperature": 0}
    found = client.responses.create(**how)
    assert found.output_text == expected("AAA", 12)
    assert found.usage.output_tokens == 12
    with client.responses.stream(**how) as stream:
        events = list(stream)
    deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
    assert events[-1].type == "response.incomplete"
    assert "".join(deltas) == events[-1].response.output_text == found.output_text
    turns = [{"role": "user", "content": "AAA"}, *found.output, {"role": "user", "content": "B"}]
    again = client.responses.create(**{**how, "input": turns})
    assert again.usage.input_tokens == 16
    with pytest.raises(openai.BadRequestError, match="nothing is stored"):
        client.responses.create(previous_response_id=found.id, **how)

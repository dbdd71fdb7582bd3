"""Schemas and tools by HTTP, over a decoder without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("llguidance")
from tests.serving.test_openai import CHAT, Service
from tests.text.fake import HERMES, PRINTED, Tokenizer
from tests.text.test_grammar import SCHEMA, right, tool

ASKED = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 200, "seed": 3}
FORM = {"type": "json_schema", "json_schema": {"name": "pet", "schema": SCHEMA, "strict": True}}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service(Tokenizer(PRINTED, HERMES), 300)
    yield made
    made.end()


def test_a_schema(service: Service) -> None:
    status, found = service.ask(CHAT, {**ASKED, "response_format": FORM, "n": 3})
    assert status == 200
    texts = [c["message"]["content"] for c in found["choices"]]
    assert all(map(right, texts))
    assert {c["finish_reason"] for c in found["choices"]} == {"stop"}
    events = service.events(CHAT, {**ASKED, "response_format": FORM})
    parts = [e["choices"][0]["delta"].get("content", "") for e in events]
    assert "".join(parts) == texts[0]
    status, found = service.ask(CHAT, {**ASKED, "response_format": {"type": "json_object"}})
    assert status == 200
    assert found["choices"][0]["message"]["content"].startswith("{")


@pytest.mark.parametrize(
    ("choice", "names"),
    [("required", {"f", "g"}), ({"type": "function", "function": {"name": "g"}}, {"g"})],
)
def test_tools(service: Service, choice: Any, names: set[str]) -> None:
    row = {**ASKED, "tools": [tool("f"), tool("g")], "tool_choice": choice,
           "parallel_tool_calls": False, "temperature": 2}  # fmt: skip
    seen = set()
    for seed in range(9):
        status, found = service.ask(CHAT, {**row, "seed": seed})
        assert status == 200
        [answer] = found["choices"]
        [call] = answer["message"]["tool_calls"]
        assert answer["finish_reason"] == "tool_calls"
        assert answer["message"]["content"] is None
        assert call["type"] == "function"
        assert re.fullmatch("[0-9a-f]{9}", call["id"])  # templates of Mistral take nine alone
        assert right(call["function"]["arguments"])
        seen.add(call["function"]["name"])
    assert seen == names
    events = service.events(CHAT, {**row, "seed": 8})
    [streamed] = [d for e in events if (d := e["choices"][0]["delta"].get("tool_calls"))]
    assert streamed[0]["index"] == 0
    assert streamed[0]["function"] == call["function"]
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert not any(e["choices"][0]["delta"].get("content") for e in events)


def test_tools_that_are_not_called(service: Service) -> None:
    _, plain = service.ask(CHAT, {**ASKED, "max_tokens": 20})
    _, found = service.ask(CHAT, {**ASKED, "max_tokens": 20, "tools": [tool("f")],
                                  "tool_choice": "none"})  # fmt: skip
    assert found["choices"][0]["message"] == plain["choices"][0]["message"]


def test_calls_and_results_in_messages(service: Service) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        *ASKED["messages"],  # type: ignore[misc]
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "5"},
    ]
    assert service.ask(CHAT, {**ASKED, "messages": messages, "tools": [tool("f")]})[0] == 200


@pytest.mark.parametrize(
    ("more", "param", "why"),
    [({"tools": [tool("f")], "response_format": FORM}, "response_format", "with 'tools'"),
     ({"tools": [tool("f", {"type": "object", "not": {}})]}, "tools", "not"),
     ({"tools": [tool("f")], "tool_choice": "any"}, "tool_choice", "none, auto"),
     ({"tools": [tool("f")] * 129}, "tools", "at most 128"),
     ({"parallel_tool_calls": 1}, "parallel_tool_calls", "true or false"),
     ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "zz"}}}},
      "response_format", "zz"),
     ({"response_format": {"type": "json_schema"}}, "response_format", "has a 'schema'")],
)  # fmt: skip
def test_wrong_forms(service: Service, more: dict[str, Any], param: str, why: str) -> None:
    status, found = service.ask(CHAT, {**ASKED, **more})
    assert (status, found["error"]["param"]) == (400, param)
    assert why in found["error"]["message"]
    assert json.dumps(found["error"]["message"]).count("\\n") == 0

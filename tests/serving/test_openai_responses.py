"""/v1/responses over a decoder without a model: what it says is what a chat says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("h11")
from mgx_mlir.integrations.openai.again import Stream
from tests.serving.test_openai import CHAT, GREEDY, SEEDED, Service, expected
from tests.text.fake import HERMES, PRINTED, Tokenizer

PATH = "/v1/responses"


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    made = Service()
    yield made
    made.end()


def streamed(service: Service, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream, whose lines say their types twice."""
    found = service.open(PATH, {**row, "stream": True})
    assert found.getheader("content-type") == "text/event-stream"
    rows = [r for r in found.read().decode().split("\n\n") if r and not r.startswith(":")]
    events = []
    for text in rows:
        head, _, data = text.partition("\ndata: ")
        event = json.loads(data)
        assert head == f"event: {event['type']}"
        events.append(event)
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    return events


def same(response: dict[str, Any]) -> dict[str, Any]:
    """A response without its ids and its time."""
    output = [{k: v for k, v in item.items() if k not in ("id", "call_id")}
              for item in response["output"]]  # fmt: skip
    return {**response, "id": None, "created_at": None, "output": output}


def test_a_response(shared: Service) -> None:
    row = {"input": "AAA", "max_output_tokens": 12, "temperature": 0}
    status, found = shared.ask(PATH, row)
    assert status == 200
    text = expected("AAA", 12)
    [item] = found["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    [part] = item["content"]
    assert (part["type"], part["text"]) == ("output_text", text)
    assert found["status"] == "incomplete"
    assert found["incomplete_details"] == {"reason": "max_output_tokens"}
    usage = found["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (3, 12, 15)
    assert (found["object"], found["model"], found["store"]) == ("response", "fake", False)
    events = streamed(shared, row)
    assert same(events[-1]["response"])["output"] == same(found)["output"]
    kinds = [e["type"].removeprefix("response.") for e in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]
    deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == text
    ids = {e["item_id"] for e in events if "item_id" in e}
    assert ids == {events[-1]["response"]["output"][0]["id"]}


def test_a_conversation_is_that_of_a_chat(shared: Service) -> None:
    """Instructions are the system's message; a turn's text and calls are one message."""
    turns = (("system", "AB"), ("user", "C"), ("assistant", "D"), ("user", "EF"))
    messages = [{"role": role, "content": content} for role, content in turns]
    _, want = shared.ask(CHAT, {**SEEDED, "messages": messages, "max_tokens": 9})
    items = [{"role": "user", "content": [{"type": "input_text", "text": "C"}]},
             {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
              "content": [{"type": "output_text", "text": "D", "annotations": []}]},
             {"role": "user", "content": "EF"}]  # fmt: skip
    more = {"instructions": "AB", "max_output_tokens": 9}
    row = {**SEEDED, **more, "input": items, "max_tokens": None}
    _, found = shared.ask(PATH, row)
    [item] = found["output"]
    assert item["content"][0]["text"] == want["choices"][0]["message"]["content"]
    assert found["instructions"] == "AB"


def test_calls_and_forms() -> None:
    pytest.importorskip("llguidance")
    from tests.text.test_grammar import SCHEMA, right, tool

    own = Service(Tokenizer(PRINTED, HERMES), 300)
    try:
        row: dict[str, Any] = {"input": "a", "max_output_tokens": 200, "seed": 3}
        form = {"type": "json_schema", "name": "pet", "schema": SCHEMA, "strict": True}
        _, found = own.ask(PATH, {**row, "text": {"format": form}})
        assert right(found["output"][0]["content"][0]["text"])
        assert found["status"] == "completed"
        flat = [{"type": "function", **tool(name)["function"]} for name in "fg"]
        row |= {"tools": flat, "tool_choice": {"type": "function", "name": "g"}}
        _, found = own.ask(PATH, row)
        [call] = found["output"]
        assert (call["type"], call["name"]) == ("function_call", "g")
        assert right(call["arguments"])
        events = streamed(own, row)
        assert same(events[-1]["response"])["output"] == same(found)["output"]
        kinds = [e["type"].removeprefix("response.") for e in events[2:]]
        assert kinds == ["output_item.added", "function_call_arguments.delta",
                         "function_call_arguments.done", "output_item.done",
                         "completed"]  # fmt: skip
        said = {"type": "message", "role": "assistant", "content": "so"}
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "5"}
        turns = [{"role": "user", "content": "a"}, said, call, result]
        status, found = own.ask(PATH, {**row, "input": turns, "max_output_tokens": 5})
        assert status == 200, found
    finally:
        own.end()


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "input", "'input' expected a text, or a list of items"),
    ({"input": []}, "input", "'input' expected"),
    ({"input": [5]}, "input", r"input\[0\] expected a message"),
    ({"input": [{"type": "reasoning"}]}, "input", "function_call_output, got 'reasoning'"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input", "parts of text"),
    ({"input": [{"type": "function_call", "name": "f", "arguments": "{"}]}, "input", "arguments"),
    ({"input": "A", "previous_response_id": "resp_1"}, "previous_response_id", "nothing is stored"),
    ({"input": "A", "conversation": "c"}, "conversation", "send the whole conversation"),
    ({"input": "A", "store": True}, "store", "is not supported, expected false"),
    ({"input": "A", "background": True}, "background", "is not supported"),
    ({"input": "A", "messages": []}, "messages", "is no field of /v1/responses"),
    ({"input": "A", "max_tokens": 5}, "max_tokens", "is no field of /v1/responses"),
    ({"input": "A", "max_output_tokens": 0}, "max_output_tokens", "expected an integer 1 to"),
    ({"input": "A", "text": 5}, "text", "expected an object"),
    ({"input": "A", "text": {"x": 5}}, "x", "unknown fields: 'x'"),
    ({"input": "A", "reasoning": 5}, "reasoning", "expected an object with 'effort'"),
    ({"input": "A", "zzz": 5}, "zzz", "unknown fields: 'zzz'"),
    ({"input": "A", "model": "x"}, "model", "does not exist"),
    ({"input": "A" * 70}, "input", "the prompt has 70 tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "param", "why"), WRONG)
def test_wrong_requests(row: dict[str, Any], param: str, why: str, shared: Service) -> None:
    status, found = shared.ask(PATH, row)
    assert status in (400, 404), found
    assert re.search(why, found["error"]["message"])
    assert found["error"]["param"] == param


def test_a_model_that_fails_in_a_stream() -> None:
    own = Service()
    try:
        own.decoder.broken = True
        *_, last = streamed(own, {"input": "AAA", **GREEDY, "max_tokens": None})
        assert last["type"] == "error"
        assert "secret" not in json.dumps(last)
        assert "the model failed" in last["message"]
    finally:
        own.end()


def test_a_stream_of_a_second_process_goes_on(shared: Service) -> None:
    """Ids are those of the first; events that the client has are not sent again."""

    def raw() -> list[bytes]:
        row = {"input": "AAA", "max_output_tokens": 6, "temperature": 0, "stream": True}
        return [p + b"\n\n" for p in shared.open(PATH, row).read().split(b"\n\n") if p]

    first, second = raw(), raw()
    stream = Stream()
    stream.begin()
    got = [stream.add(event) for event in first[:5]]
    assert not stream.ended
    stream.begin()
    got += [stream.add(event) for event in second]
    assert stream.ended
    own = [json.loads(e.partition(b"\ndata: ")[2])["response"]["id"] for e in (first[0], second[0])]
    replaced = [e.replace(own[1][5:].encode(), own[0][5:].encode()) for e in second]
    assert b"".join(got[5:]) == b"".join(replaced[5:])

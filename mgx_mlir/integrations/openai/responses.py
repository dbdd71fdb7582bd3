"""/v1/responses: requests in OpenAI's newer form, read as chats, and their answers.

Nothing is stored: each request has the whole conversation in `input`.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.integrations.openai.answers import CallReader, Choice
from mgx_mlir.integrations.openai.fields import ApiError, Fields, shown
from mgx_mlir.integrations.openai.questions import Question, question
from mgx_mlir.text.model import TextModel
from mgx_mlir.text.requests import Piece
from mgx_mlir.text.tokens import Tokenizer

# fields of chats that a response has in another form, or not at all
_OF_CHATS = (
    "messages", "n", "stop", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens",
    "response_format", "reasoning_effort", "stream_options", "modalities", "prediction",
)  # fmt: skip
_NAMES = {
    "messages": "input", "max_completion_tokens": "max_output_tokens", "response_format": "text",
    "reasoning_effort": "reasoning",
}  # fmt: skip
_STATE = "nothing is stored: send the whole conversation in 'input'"
_PARTS = ("input_text", "output_text", "text")


def response_question(row: Mapping[str, Any], model: TextModel, name: str) -> Question:
    """Read a request for the model of this name. Errors: ApiError; MgxError for a prompt."""
    for field in _OF_CHATS:
        if row.get(field) is not None:
            raise ApiError(f"'{field}' is no field of /v1/responses", param=field)
    for field in ("previous_response_id", "conversation", "prompt"):
        if row.get(field) is not None:
            raise ApiError(f"'{field}' is not supported: {_STATE}", param=field)
    fields = Fields(row)
    for field, neutral in (
        ("store", False), ("background", False), ("truncation", "disabled"), ("include", []),
        ("max_tool_calls", None),
    ):  # fmt: skip
        fields.only(field, neutral)
    chat: dict[str, Any] = {"messages": _messages(fields)}
    chat["max_completion_tokens"] = fields.take("max_output_tokens")
    chat["response_format"] = _format(fields)
    reasoning = fields.take("reasoning", {})
    if not isinstance(reasoning, Mapping) or set(reasoning) - {"effort", "summary"}:
        raise ApiError(f"'reasoning' expected an object with 'effort', got {shown(reasoning)}",
                       param="reasoning")  # fmt: skip
    chat["reasoning_effort"] = reasoning.get("effort")
    tools = fields.take("tools")
    if isinstance(tools, list):
        tools = [_nested(tool) for tool in tools]
    chat["tools"], chat["tool_choice"] = tools, _nested(fields.take("tool_choice"))
    try:
        return question({**fields.rest(), **chat}, True, model, name)
    except ApiError as e:
        param = _NAMES.get(e.param or "", e.param)
        said = str(e).replace(f"'{e.param}'", f"'{param}'")
        raise ApiError(said, e.status, param=param, code=e.code) from e


def _messages(fields: Fields) -> list[Any]:
    """Return the messages of `instructions` and `input`. Raises ApiError."""
    given, instructions = fields.take("input"), fields.take("instructions")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise ApiError(f"'input' expected a text, or a list of items, got {shown(given)}",
                       param="input")  # fmt: skip
    found: list[Any] = []
    if instructions is not None:
        found.append({"role": "system", "content": instructions})
    for i, item in enumerate(given):
        message = _message(item, f"input[{i}]")
        calls = message.get("tool_calls")
        if calls and found and found[-1].get("role") == "assistant":  # one turn has several items
            found[-1] = {**found[-1], "tool_calls": [*found[-1].get("tool_calls", []), *calls]}
        else:
            found.append(message)
    return found


def _message(item: Any, at: str) -> dict[str, Any]:
    """Return the message of an item: a message, a call, or a call's result."""
    kind = item.get("type", "message") if isinstance(item, Mapping) else None
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"),
                "content": _content(item.get("output"), at)}  # fmt: skip
    if kind != "message":
        raise ApiError(f"{at} expected a message, function_call or function_call_output, got "
                       f"{shown(kind)}", param="input")  # fmt: skip
    return {"role": item.get("role"), "content": _content(item.get("content"), at)}


def _content(content: Any, at: str) -> Any:
    """Return a content whose parts have the type of chats."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") not in _PARTS:
            raise ApiError(f"{at}: content expected parts of text, got {shown(part)}",
                           param="input")  # fmt: skip
    return [{"type": "text", "text": part.get("text")} for part in content]


def _format(fields: Fields) -> Any:
    """Return the `response_format` of `text`. Raises ApiError."""
    stated = fields.take("text", {})
    if not isinstance(stated, Mapping):
        raise ApiError(f"'text' expected an object, got {shown(stated)}", param="text")
    own = Fields(stated)
    form = own.take("format")
    own.only("verbosity", "medium")
    own.done()
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {k: v for k, v in form.items() if k != "type"}}


def _nested(value: Any) -> Any:
    """Return a tool, or the choice of one, as chats have it: its function one level down."""
    if not isinstance(value, Mapping) or value.get("type") != "function" or "function" in value:
        return value
    return {"type": "function", "function": {k: v for k, v in value.items() if k != "type"}}


class ResponseWriter:
    """Writer of one response: as an object, or as the events of a stream.

    `row`: the request, whose settings an answer repeats. `ends`: tokens that are not shown.
    """

    def __init__(
        self, asked: Question, tokenizer: Tokenizer, ends: frozenset[int], row: Mapping[str, Any]
    ) -> None:
        self._asked, self._tokenizer, self._ends, self._row = asked, tokenizer, ends, row
        self._id, self._created = secrets.token_hex(12), int(time.time())
        self._count = 0  # events
        self._items: list[dict[str, Any]] = []  # complete ones
        self._text: str | None = None  # text of the message that is written

    def reader(self) -> CallReader | None:
        """Return the parser of tool calls of an answer, None if it may have no calls."""
        form = self._asked.calls
        return None if form is None else CallReader(form, self._tokenizer)

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """Return the answer as one object."""
        [choice] = choices
        if (text := "".join(choice.texts)) or not choice.calls:
            self._items.append(self._message(text))
        self._items += [self._call(call) for call in choice.calls]
        return json.dumps(self._response(choice)).encode()

    def begin(self, choice: Choice) -> bytes:
        """Return the events before an answer's pieces."""
        row = self._response(choice)
        return self._event("response.created", response=row) + self._event(
            "response.in_progress", response=row
        )

    def piece(self, choice: Choice, piece: Piece) -> bytes:
        """Return the events of a piece, which is added to the answer."""
        added = choice.add(piece, self._ends)
        found = self._written(added.text) if added.text else b""
        for call in added.calls:
            found += self._ended() + self._called(call)
        if piece.finish_reason is not None:
            if not self._items and self._text is None:
                found += self._written("")
            found += self._ended()
        return found

    def end(self, choices: Sequence[Choice]) -> bytes:
        """Return the last event."""
        row = self._response(choices[0])
        return self._event(f"response.{row['status']}", response=row)

    def error(self, body: bytes) -> bytes:
        """Return the event of an error in a stream that has started."""
        row = json.loads(body)["error"]
        return self._event("error", **{k: row[k] for k in ("code", "message", "param")})

    # ---- events and objects ------------------------------------------------------------------

    def _event(self, kind: str, **row: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._count, **row}
        self._count += 1
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()

    def _written(self, text: str) -> bytes:
        """Return the events of a text, and of the beginning of its message."""
        found, place = b"", self._place()
        if self._text is None:
            self._text = ""
            item = {**self._message(""), "status": "in_progress", "content": []}
            found = self._event("response.output_item.added", output_index=place["output_index"],
                                item=item)  # fmt: skip
            found += self._event("response.content_part.added", **place, part=_part(""))
        self._text += text
        if not text:
            return found
        return found + self._event("response.output_text.delta", **place, delta=text, logprobs=[])

    def _ended(self) -> bytes:
        """Return the events of the end of a message, if one is written."""
        if self._text is None:
            return b""
        place, item = self._place(), self._message(self._text)
        found = self._event("response.output_text.done", **place, text=self._text, logprobs=[])
        found += self._event("response.content_part.done", **place, part=_part(self._text))
        self._text = None
        return found + self._done(item)

    def _called(self, call: Mapping[str, Any]) -> bytes:
        """Return the events of a call, which comes in one piece."""
        item = self._call(call)
        place = {"item_id": item["id"], "output_index": len(self._items)}
        found = self._event("response.output_item.added", output_index=place["output_index"],
                            item={**item, "status": "in_progress", "arguments": ""})  # fmt: skip
        name = "response.function_call_arguments"
        found += self._event(f"{name}.delta", **place, delta=item["arguments"])
        found += self._event(f"{name}.done", **place, name=item["name"],
                             arguments=item["arguments"])  # fmt: skip
        return found + self._done(item)

    def _done(self, item: dict[str, Any]) -> bytes:
        self._items.append(item)
        return self._event("response.output_item.done", output_index=len(self._items) - 1,
                           item=item)  # fmt: skip

    def _place(self) -> dict[str, Any]:
        at = len(self._items)
        return {"item_id": f"msg_{self._id}_{at}", "output_index": at, "content_index": 0}

    def _message(self, text: str) -> dict[str, Any]:
        return {"id": f"msg_{self._id}_{len(self._items)}", "type": "message",
                "status": "completed", "role": "assistant", "content": [_part(text)]}  # fmt: skip

    def _call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        return {"id": f"fc_{self._id}_{call['id']}", "type": "function_call",
                "status": "completed", "call_id": call["id"], **call["function"]}  # fmt: skip

    def _response(self, choice: Choice) -> dict[str, Any]:
        cut = choice.finish_reason == "length"
        ended = choice.finish_reason is not None
        asked, request = self._row, self._asked.requests[0]
        made, cached = len(choice.handle.tokens), choice.handle.cached_tokens
        prompt = self._asked.prompt_tokens
        usage = {
            "input_tokens": prompt, "input_tokens_details": {"cached_tokens": min(cached, prompt)},
            "output_tokens": made, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + made,
        }  # fmt: skip
        status = "incomplete" if cut else "completed" if ended else "in_progress"
        return {
            "id": f"resp_{self._id}", "object": "response", "created_at": self._created,
            "status": status, "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "instructions": asked.get("instructions"), "model": self._asked.model,
            "max_output_tokens": asked.get("max_output_tokens"),
            "metadata": asked.get("metadata") or {},
            "output": list(self._items) if ended else [],
            "parallel_tool_calls": asked.get("parallel_tool_calls") is not False,
            "previous_response_id": None, "reasoning": asked.get("reasoning"), "store": False,
            "temperature": request.sampling.temperature, "top_p": request.sampling.top_p,
            "text": asked.get("text") or {"format": {"type": "text"}},
            "tool_choice": asked.get("tool_choice") or "auto", "tools": asked.get("tools") or [],
            "truncation": "disabled", "usage": usage if ended else None,
        }  # fmt: skip


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

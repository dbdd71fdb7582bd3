"""Messages of a chat, in OpenAI's form, as the templates of models take them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mgx_mlir.core.errors import UsageError

Message = Mapping[str, Any]


def of_template(messages: Sequence[Message], template: str | None) -> list[Message]:
    """Return messages with the role `system` in place of `developer`, if a template has no such
    role.
    """
    if template is not None and "developer" in template:
        return list(messages)
    return [{**m, "role": "system"} if m.get("role") == "developer" else m for m in messages]


def plain(messages: Sequence[object]) -> list[dict[str, Any]]:
    """Return messages whose content is one text, and whose calls have objects as arguments.

    Raises UsageError, which names the message.
    """
    return [_plain(row, f"messages[{i}]") for i, row in enumerate(messages)]


def _plain(row: object, at: str) -> dict[str, Any]:
    if not isinstance(row, Mapping) or not isinstance(row.get("role"), str):
        raise UsageError(f"{at} expected an object with a 'role'")
    found = dict(row)
    calls = found.pop("tool_calls", None)
    if calls:
        if not isinstance(calls, Sequence) or isinstance(calls, str):
            raise UsageError(f"{at} expected a list as 'tool_calls', got {_shown(calls)}")
        found["tool_calls"] = [_call(call, at) for call in calls]
    content = found.get("content")
    if isinstance(content, list):
        content = "".join(_parts(content, at))
    if content is None and calls:
        content = ""
    if not isinstance(content, str):
        raise UsageError(f"{at} expected a text as 'content', got {_shown(content)}")
    return {**found, "content": content}


def _parts(content: Sequence[object], at: str) -> Iterator[str]:
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") != "text":
            raise UsageError(f"{at}: content expected parts of the type 'text'")
        if not isinstance(part.get("text"), str):
            raise UsageError(f"{at}: a part expected a 'text'")
        yield part["text"]


def _call(call: object, at: str) -> dict[str, Any]:
    """Return a call whose arguments are an object: OpenAI's clients send them as JSON text."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UsageError(f"{at}: a call of 'tool_calls' expected a 'function' with a 'name'")
    given = function.get("arguments", {})
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        arguments = None
    if not isinstance(arguments, Mapping):
        raise UsageError(f"{at}: 'arguments' of a call expected JSON of an object, got "
                         f"{_shown(given)}")  # fmt: skip
    assert isinstance(call, Mapping)
    return {**call, "function": {**function, "arguments": arguments}}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."

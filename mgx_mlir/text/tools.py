"""Calls of tools: the grammar that constrains an answer to them, and their parser.

Models write calls in the form of their template. The forms of Hermes (Qwen, SmolLM 3, and others),
of Llama 3 and of Mistral (a list of calls) are supported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.grammar import JSON_STYLE, Grammar
from mgx_mlir.text.stops import begun
from mgx_mlir.text.tokens import Tokenizer

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class CallForm:
    """The text of a call: `trigger`, `begin`, an object with name and arguments, `end`.

    With `between` it is a list: `trigger`, `opening`, `begin`, an object, `between`, `begin`, ...
    """

    sign: str  # words of a template by which the form is recognised
    trigger: str
    begin: str
    arguments: str  # key of the arguments
    end: str
    opening: str = ""
    between: str = ""


FORMS = (
    CallForm("<tool_call>", "<tool_call>", "\n{", "arguments", "\n</tool_call>"),
    CallForm('"parameters": dictionary of argument name', '{"name":', "{", "parameters", ""),
    CallForm("[TOOL_CALLS] [", "[TOOL_CALLS]", "{", "arguments", "]", " [", ", "),
    CallForm("[TOOL_CALLS][", "[TOOL_CALLS]", "{", "arguments", "]", "[", ", "),
)


@dataclass(frozen=True)
class Call:
    """A call that a model wrote; `arguments` is the JSON of an object."""

    name: str
    arguments: str


def form_of(tokenizer: Tokenizer) -> CallForm:
    """Return the call form of a model's template. Raises UsageError."""
    template = tokenizer.template_of(tools=True) or ""
    if not re.search(r"\btools\b", template):
        raise UsageError("the model's template takes no tools")
    found = next((f for f in FORMS if f.sign in template), None)
    if found is None:
        raise UsageError("the model's template writes calls in an unknown form; known are those of "
                         "Hermes (<tool_call>), Llama 3 and Mistral ([TOOL_CALLS] [)")  # fmt: skip
    return found


def grammar(
    tools: Sequence[Mapping[str, Any]],
    form: CallForm,
    choice: str | Literal["auto", "required"],
    *,
    parallel: bool = True,
    special: bool = False,
) -> Grammar:
    """Return the grammar of an answer that may call tools ({"type": "function", "function": ..}).

    choice: "auto", "required", or the name of the one to call. parallel: several calls in one
    answer. special: the trigger is a special token. Raises UsageError for wrong tools.
    """
    functions = {}
    for i, tool in enumerate(tools):
        name, schema = _function(tool, i)
        functions[name] = schema
    if choice not in ("auto", "required"):
        if choice not in functions:
            raise UsageError(
                f"there is no tool '{choice[:64]}'",
                notes=[f"the tools are {', '.join(functions) or 'none'}"],
            )
        functions, parallel = {choice: functions[choice]}, False
    trigger = form.trigger if special else json.dumps(form.trigger)
    # the trigger is a part of the object: the rest begins after it
    rest = form.begin if not form.trigger.startswith(form.begin) else None
    rows = []
    for i, (name, schema) in enumerate(functions.items()):
        head = f'{json.dumps(name)}, "{form.arguments}": '
        head = f" {head}" if rest is None else f'{rest}"name": {head}'
        style = {**schema, "x-guidance": JSON_STYLE}
        rows.append(f'f{i}: {json.dumps(head)} %json {json.dumps(style)} "}}"')
    end = f" {json.dumps(form.end)}" if form.end else ""
    body = f"( {' | '.join(f'f{i}' for i in range(len(rows)))} )"
    if form.between:
        more = f" ({json.dumps(form.between)} {body})*" if parallel else ""
        body, parallel = f"{json.dumps(form.opening)} {body}{more}", False
    body += end
    if choice == "auto":
        start = "call* tail" if parallel else "tail | call"
        calls = f"tail: TEXT\nTEXT: /(.|\\n)*/\ntrigger[lazy]: TEXT {trigger}\ncall: trigger {body}"
        if special:
            calls = f"tail: TEXT\nTEXT: /(.|\\n)*/\ncall: TEXT {trigger} {body}"
    else:
        start = 'call ("\\n" call)*' if parallel else "call"
        calls = f"call: {trigger} {body}"
    return Grammar.lark("\n".join(["%llguidance {}", f"start: {start}", calls, *rows]) + "\n")


def _function(tool: object, i: int) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a tool, and the schema of its arguments."""
    at = f"tools[{i}]"
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(tool, Mapping):
        raise UsageError(f"{at} expected an object with a 'function'")
    if tool.get("type") != "function":
        raise UsageError(f"{at} expected the type 'function', got {tool.get('type')!r}")
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{at} expected a name of letters, digits, _ and -, at most 64")
    schema = function.get("parameters")
    if schema is None:
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
    if not isinstance(schema, Mapping):
        raise UsageError(f"{at} expected an object as 'parameters'")
    return name, {"type": "object", **schema}


class Calls:
    """Incremental split of an answer's text into text and calls."""

    def __init__(self, form: CallForm) -> None:
        self._form, self._held = form, ""

    def add(self, text: str) -> tuple[str, list[Call]]:
        """Return the text outside of calls, and the calls that are complete."""
        self._held += text
        shown, calls = "", []
        while (at := self._held.find(self._form.trigger)) >= 0:
            before, rest = self._held[:at].rstrip(), self._held[at:]
            shown += before
            self._held = rest
            read = self._read()
            if read is None:
                return shown, calls
            calls += read
        keep = begun(self._form.trigger, self._held)
        # spaces before a call are not text
        end = len(self._held[: len(self._held) - keep].rstrip())
        shown, self._held = shown + self._held[:end], self._held[end:]
        return shown, calls

    def _read(self) -> list[Call] | None:
        """Remove calls from the held text; None if they are not complete."""
        form = self._form
        at = len(form.trigger) if not form.trigger.startswith(form.begin) else 0
        begin = self._held.find("[" if form.between else "{", at)
        if begin < 0:
            return None
        try:
            found, size = json.JSONDecoder().raw_decode(self._held[begin:])
        except ValueError:
            return None
        rows = found if form.between else [found]
        rest = self._held[begin + size :]
        end = "" if form.between else form.end  # the list has it
        if not rest.startswith(end) or not all(isinstance(row, dict) for row in rows):
            return None
        self._held = rest[len(end) :]
        return [Call(str(row.get("name")), json.dumps(row.get(form.arguments, {}))) for row in rows]

    def rest(self) -> str:
        """Return the held text: no more text comes."""
        held, self._held = self._held, ""
        return held if held.strip() else ""

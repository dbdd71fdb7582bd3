"""Forms of a chat's answer: `response_format`, and `tools` with their choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.openai.fields import ApiError, Fields, shown
from mgx_mlir.text.grammar import Grammar
from mgx_mlir.text.model import TextModel
from mgx_mlir.text.tools import CallForm, form_of, grammar

T = TypeVar("T")
_TOOLS = 128  # OpenAI's limit of tools in a request


def of_caller(param: str, make: Callable[[], T]) -> T:
    """Call `make`; its error becomes an ApiError of this field."""
    try:
        return make()
    except MgxError as e:
        raise ApiError(e.message, param=param) from e


def format_field(fields: Fields) -> Grammar | None:
    """Return the grammar of `response_format`, None for any text. Raises ApiError."""
    found = fields.take("response_format")
    if found is None:
        return None
    kind = found.get("type") if isinstance(found, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Grammar.json()
    schema = found.get("json_schema") if isinstance(found, dict) else None
    if (
        kind != "json_schema"
        or not isinstance(schema, dict)
        or not isinstance(schema.get("schema"), dict)
    ):
        raise ApiError(
            "'response_format' expected the type text, json_object, or json_schema with a "
            f"'json_schema' that has a 'schema', got {shown(found)}", param="response_format",
        )  # fmt: skip
    return of_caller("response_format", lambda: Grammar.json(schema["schema"]))


def tool_fields(
    fields: Fields, model: TextModel
) -> tuple[list[Any], CallForm | None, Grammar | None]:
    """Return the tools for the template, the parser form of their calls, and the answer's grammar.

    Raises ApiError.
    """
    tools, choice = fields.take("tools"), fields.take("tool_choice")
    parallel = fields.take("parallel_tool_calls", True)
    if not isinstance(parallel, bool):
        raise ApiError(f"'parallel_tool_calls' expected true or false, got {shown(parallel)}",
                       param="parallel_tool_calls")  # fmt: skip
    if not isinstance(tools, list | None) or len(tools or []) > _TOOLS:
        raise ApiError(f"'tools' expected a list of at most {_TOOLS}, got {shown(tools)}",
                       param="tools")  # fmt: skip
    wanted = _choice(choice, bool(tools))
    if not tools or wanted == "none":
        return [], None, None
    form = of_caller("tools", lambda: form_of(model.tokenizer))
    special = model.tokenizer.special_token(form.trigger) is not None
    made = of_caller(
        "tools", lambda: grammar(tools, form, wanted, parallel=parallel, special=special)
    )
    return tools, form, made


def _choice(choice: object, tools: bool) -> str:
    """Return "none", "auto", "required", or the name of the tool to call."""
    if choice is None:
        return "auto"
    function = choice.get("function") if isinstance(choice, Mapping) else None
    named = function.get("name") if isinstance(function, Mapping) else None
    found = named if isinstance(named, str) else choice
    if not isinstance(found, str) or (named is None and found not in ("none", "auto", "required")):
        raise ApiError("'tool_choice' expected none, auto, required, or the name of a function, "
                       f"got {shown(choice)}", param="tool_choice")  # fmt: skip
    if found not in ("none", "auto") and not tools:
        raise ApiError("'tool_choice' expected 'tools'", param="tool_choice")
    return found

"""Answers that follow a grammar, over a decoder without a model."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text import Grammar, TextModel
from mgx_mlir.text.tools import FORMS, Call, Calls, grammar
from tests.text.fake import PRINTED, Fake, Tokenizer

HERMES, LLAMA, MISTRAL, _ = FORMS
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "open": {"type": "boolean"},
    },
    "required": ["kind", "count", "open"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> TextModel:
    pytest.importorskip("llguidance")
    letters = Tokenizer(PRINTED)
    decoder = Fake(3, 300, letters.size)
    return TextModel(letters, decoder, {}, frozenset([letters.size - 1]))  # type: ignore[arg-type]


def right(text: str) -> bool:
    row = json.loads(text)
    return (
        list(row) == ["kind", "count", "open"]
        and row["kind"] in ("cat", "dog")
        and type(row["count"]) is int
        and 0 <= row["count"] < 100
        and type(row["open"]) is bool
    )


def test_json_by_a_schema(model: TextModel) -> None:
    """Greedy and drawn, alone and together: one request may be given twice."""
    made = [
        model.request("ab", constraint=Grammar.json(SCHEMA), temperature=3.0 * (i > 0), seed=i)
        for i in range(9)
    ]
    alone = [model.engine().submit(r) for r in made]
    texts = [h.text() for h in alone]
    assert all(map(right, texts))
    assert len(set(texts)) > 3
    assert {h.finish_reason for h in alone} == {"stop"}
    together = [model.engine().submit(r) for r in made]
    assert [h.text() for h in together] == texts


@pytest.mark.parametrize(
    ("constraint", "pattern"),
    [(Grammar.regex(r"[0-9]{3}-[a-f]{2,5}"), r"[0-9]{3}-[a-f]{2,5}"),
     (Grammar.lark('start: "yes" | "no" ("!" | "?")'), r"yes|no[!?]"),
     (Grammar.gbnf('root ::= "x" ("a" | "b") "."'), r"x[ab]\.")],
)  # fmt: skip
def test_other_forms(model: TextModel, constraint: Grammar, pattern: str) -> None:
    for seed in range(4):
        found = model.generate("q", constraint=constraint, temperature=1.0, seed=seed)
        assert re.fullmatch(pattern, found)


def test_an_answer_may_end_where_the_grammar_allows_it(model: TextModel) -> None:
    for seed in range(6):
        how = {"constraint": Grammar.regex("a*"), "temperature": 3.0, "max_new_tokens": 9}
        handle = model.engine().submit(model.request("q", seed=seed, **how))  # type: ignore[arg-type]
        text = handle.text()
        assert set(text) <= {"a"}
        assert handle.finish_reason == ("length" if len(text) == 9 else "stop")


@pytest.mark.parametrize(
    ("constraint", "message"),
    [(Grammar.regex("("), "unclosed group"), (Grammar.lark("start: x"), "unknown name"),
     (Grammar.gbnf("x"), "cannot|Failed|understood"), (Grammar.regex(5), "expected a text"),  # type: ignore[arg-type]
     (Grammar.json({"type": "zzz"}), "zzz"), (Grammar.json({"not": {}}), "not"),
     (5, "expected a Grammar"), ("x", "expected a Grammar")],
)  # fmt: skip
def test_wrong_grammars(model: TextModel, constraint: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as found:
        model.generate("q", constraint=constraint)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("schema", ["{", object(), {"a": object()}])
def test_wrong_schemas(schema: Any) -> None:
    with pytest.raises(UsageError, match="the JSON schema cannot be read"):
        Grammar.json(schema)


# ---- tools ------------------------------------------------------------------------------------


def tool(name: str, parameters: Any = SCHEMA) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


HELLO = '<tool_call>\n{"name": "f", "arguments": {"x": 5}}\n</tool_call>'


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_calls_in_a_text(size: int) -> None:
    def read(text: str, form: Any = HERMES) -> tuple[str, list[Call]]:
        reader, shown, found = Calls(form), "", []
        for at in range(0, len(text), size):
            more, calls = reader.add(text[at : at + size])
            shown, found = shown + more, found + calls
        return shown + reader.rest(), found

    one = Call("f", '{"x": 5}')
    assert read(HELLO) == ("", [one])
    assert read(f"Let me see.\n\n{HELLO}\n{HELLO}") == ("Let me see.", [one, one])
    assert read("a <tool b <tool_ c") == ("a <tool b <tool_ c", [])
    assert read(HELLO[:-1]) == (HELLO[:-1], [])  # ended by its length
    row = '{"name": "f", "arguments": {"x": 5}}'
    listed = f"[TOOL_CALLS] [{row}, {row}]"
    assert read(f"So: {listed}", MISTRAL) == ("So:", [one, one])
    assert read(listed[:-1], MISTRAL) == (listed[:-1], [])
    assert read("[TOOL_CALLS] [5]", MISTRAL) == ("[TOOL_CALLS] [5]", [])
    assert read('{"name": "f", "parameters": {"x": "}"}}', LLAMA) == (
        "", [Call("f", '{"x": "}"}')],
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("choice", ["required", "g"])
def test_an_answer_calls_tools(model: TextModel, form: Any, choice: str) -> None:
    names = set()
    for seed in range(9):
        held = grammar([tool("f"), tool("g")], form, choice, parallel=False)
        text = model.generate("q", constraint=held, temperature=3.0, seed=seed)
        reader = Calls(form)
        shown, [call] = reader.add(text)
        assert shown + reader.rest() == ""
        assert right(call.arguments)
        names.add(call.name)
    assert names == ({"f", "g"} if choice == "required" else {"g"})


def test_an_answer_may_call_tools(model: TextModel) -> None:
    """The random model calls no tool by itself; after the trigger it has to."""
    matching = model.grammars.bound(grammar([tool("f", None)], HERMES, "auto")).begin()
    for token in Tokenizer(PRINTED).encode('Hm. <tool_call>\n{"name": "'):
        assert matching.allowed()[token]
        matching.accept(token)
    assert [PRINTED[i] for i in matching.allowed().nonzero()[0]] == ["f"]


@pytest.mark.parametrize(
    ("tools", "choice", "message"),
    [([5], "auto", "an object with a 'function'"), ([tool("a b")], "auto", "letters, digits"),
     ([{"type": "x", "function": {}}], "auto", "the type 'function'"),
     ([tool("f", 5)], "auto", "'parameters'"), ([tool("f")], "h", "no tool 'h'")],
)  # fmt: skip
def test_wrong_tools(tools: Any, choice: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        grammar(tools, HERMES, choice)

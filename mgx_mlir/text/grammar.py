"""Answers that follow a JSON schema, a regular expression or a grammar, by llguidance."""

# llguidance is an extra, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.packages import imported
from mgx_mlir.text.tokens import Tokenizer

Form = Literal["json_schema", "regex", "lark", "gbnf"]
# JSON in the form of json.dumps: with free whitespace, small models write spaces without end
JSON_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


@dataclass(frozen=True)
class Grammar:
    """Constraint on an answer. The text of a `json_schema` is JSON."""

    form: Form
    text: str

    @staticmethod
    def json(schema: Mapping[str, Any] | str | bool | None = None) -> Grammar:
        """Return a grammar of JSON for a schema, an object or its text; None allows any object."""
        given = {"type": "object"} if schema is None else schema
        try:
            found = json.loads(given) if isinstance(given, str) else given
            return Grammar("json_schema", json.dumps(found))
        except (ValueError, TypeError, RecursionError) as e:
            raise UsageError(f"the JSON schema cannot be read: {e}") from e

    @staticmethod
    def regex(pattern: str) -> Grammar:
        """Return a grammar of texts that match a regular expression (of Rust's regex)
        completely.
        """
        return Grammar("regex", pattern)

    @staticmethod
    def lark(text: str) -> Grammar:
        """Return a grammar in the form of Lark, as llguidance reads it."""
        return Grammar("lark", text)

    @staticmethod
    def gbnf(text: str) -> Grammar:
        """Return a grammar in the form of llama.cpp's GBNF."""
        return Grammar("gbnf", text)


class Grammars:
    """Grammars of one model: llguidance's form of its tokens."""

    def __init__(self, tokenizer: Tokenizer, size: int, ends: frozenset[int]) -> None:
        """Read the tokens; `size` of them have logits, `ends` end an answer.

        Errors: UsageError if llguidance is missing or does not support the tokenizer.
        """
        self._library = imported("llguidance", "grammar")
        self.size = size
        try:
            self._tokens = self._library.LLTokenizer(
                tokenizer.inner.to_str(), n_vocab=size, eos_token=sorted(ends) or None
            )
        except Exception as e:  # llguidance raises plain ones
            raise UsageError(f"llguidance does not take the model's tokenizer: {e}") from e

    def bound(self, grammar: Grammar) -> BoundGrammar:
        """Return a grammar for the model's tokens. Raises UsageError for a malformed one."""
        text = self._text(grammar)
        wrong = self._library.LLMatcher.validate_grammar(text, self._tokens)
        if wrong and not wrong.startswith("WARNING"):
            raise UsageError(f"the constraint is not understood: {_told(wrong)}")
        return BoundGrammar(self, text)

    def _text(self, grammar: Grammar) -> str:
        if not isinstance(grammar.text, str):
            raise UsageError(f"a constraint expected a text, got {grammar.text!r}")
        matcher = self._library.LLMatcher
        try:
            if grammar.form == "json_schema":
                return str(matcher.grammar_from_json_schema(grammar.text, defaults=JSON_STYLE))
            return str(self._library.grammar_from(grammar.form, grammar.text))
        except ValueError as e:
            raise UsageError(f"the constraint is not understood: {_told(str(e))}") from e

    def matcher(self, text: str) -> Any:
        """Return llguidance's matcher of a grammar, in its initial state."""
        return self._library.LLMatcher(self._tokens, text, log_level=0)


@dataclass(frozen=True)
class BoundGrammar:
    """A Constraint of one model."""

    grammars: Grammars
    text: str

    def begin(self) -> Matching:
        """Return a matching in its initial state."""
        return Matching(self.grammars.matcher(self.text), self.grammars.size)


class Matching:
    """Tokens of one answer so far, matched against a grammar."""

    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher, self._size = matcher, size

    @property
    def complete(self) -> bool:
        """Return whether only the end may follow."""
        return bool(self._matcher.is_stopped())

    def allowed(self) -> NDArray[np.bool_]:
        """Return the tokens {vocabulary} that may come next. Raises UsageError."""
        packed = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        found = np.unpackbits(packed, bitorder="little").view(np.bool_)
        return found[: self._size]

    def accept(self, token: int) -> None:
        """Advance by a token. Raises UsageError."""
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            why = _told(str(self._matcher.get_error()))
            raise UsageError(f"the constraint cannot be followed: {why}")


_QUOTED = re.compile(r"\s*(\d*\s*\|.*|\^)?")  # lines of the grammar, and marks below them


def _told(message: str) -> str:
    """Return an error of llguidance in one line, without the quoted lines."""
    rows = [row.strip() for row in message.splitlines() if not _QUOTED.fullmatch(row)]
    return " ".join(rows)[:400]

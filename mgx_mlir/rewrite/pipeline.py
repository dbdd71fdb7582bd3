"""The textual pass pipeline: parsing, printing, and errors that point at a column.

    builtin.module(mgx-simplify-algebra{max-iterations=8},cse,func.func(canonicalize))

The grammar is MLIR's: an element is a pass with options in braces, or an op name with elements in
parentheses. Options are separated by spaces; a value may be quoted or wrapped in braces.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mgx_mlir.core.errors import PipelineError

MODULE = "builtin.module"
MAX_DEPTH = 32
_NAME_EXTRA = frozenset("-_.:")


@dataclass(frozen=True)
class PassSpec:
    """One pass by its pipeline name, with its options as written (None: no value)."""

    name: str
    options: tuple[tuple[str, str | None], ...] = ()
    column: int = 0

    def __str__(self) -> str:
        if not self.options:
            return self.name
        parts = [k if v is None else f"{k}={_quoted(v)}" for k, v in self.options]
        return f"{self.name}{{{' '.join(parts)}}}"


@dataclass(frozen=True)
class Nested:
    """Elements that run on the ops named `anchor`."""

    anchor: str
    elements: tuple[PassSpec | Nested, ...] = ()
    column: int = 0

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"

    def passes(self) -> Iterator[PassSpec]:
        """Return every pass, in order, whatever it is nested in."""
        for element in self.elements:
            if isinstance(element, Nested):
                yield from element.passes()
            else:
                yield element


def parse_pipeline(text: str) -> Nested:
    """Parse a pipeline; one without an anchor op is taken to run on builtin.module."""
    return _Parser(text).pipeline()


def print_pipeline(pipeline: Nested) -> str:
    """Return the text that parse_pipeline reads back to an equal pipeline."""
    return str(pipeline)


def did_you_mean(name: str, known: Iterable[str], *, listed_by: str = "") -> list[str]:
    """Return a note with the closest known name, else with the command that lists the names."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    if close:
        return [f"did you mean '{close[0]}'?"]
    return [f"'{listed_by}' lists the names"] if listed_by else []


def pipeline_error(
    text: str, column: int, message: str, notes: Iterable[str] = ()
) -> PipelineError:
    """Make a PipelineError; its first note is the pipeline with a caret under `column` (from 1)."""
    where = f"{text}\n      {' ' * (column - 1)}^"
    return PipelineError(message, location=f"pipeline:1:{column}", notes=[where, *notes])


def _quoted(value: str) -> str:
    plain = value and not any(c in " \t\n'\"{}()" for c in value)
    if plain:
        return value
    return f'"{value}"' if '"' not in value else f"'{value}'"


class _Parser:
    """Recursive descent over the text; `at` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def pipeline(self) -> Nested:
        self._space()
        if self.at == len(self.text):
            return Nested(MODULE, (), 1)
        elements = self._elements(closer=None)
        if len(elements) == 1 and isinstance(elements[0], Nested) and elements[0].anchor == MODULE:
            return elements[0]
        return Nested(MODULE, elements, 1)

    def _elements(self, closer: str | None) -> tuple[PassSpec | Nested, ...]:
        elements: list[PassSpec | Nested] = []
        self._space()
        if closer is not None and self._peek() == closer:
            self.at += 1
            return ()
        while True:
            elements.append(self._element())
            self._space()
            char = self._peek()
            if char == ",":
                self.at += 1
                continue
            if closer is not None and char == closer:
                self.at += 1
                return tuple(elements)
            if closer is None and char == "":
                return tuple(elements)
            expected = "',' or end of pipeline" if closer is None else f"',' or '{closer}'"
            raise self._error(f"expected {expected}, got {_shown(char)}")

    def _element(self) -> PassSpec | Nested:
        self._space()
        start = self.at
        name = self._name("pass or op name")
        self._space()
        if self._peek() == "(":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self._error(f"nested deeper than {MAX_DEPTH} ops")
            self.at += 1
            elements = self._elements(closer=")")
            self.depth -= 1
            return Nested(name, elements, start + 1)
        options = self._options() if self._peek() == "{" else ()
        return PassSpec(name, options, start + 1)

    def _options(self) -> tuple[tuple[str, str | None], ...]:
        opened = self.at
        self.at += 1
        options: list[tuple[str, str | None]] = []
        while True:
            self._space()
            if self._peek() == "}":
                self.at += 1
                return tuple(options)
            if self._peek() == "":
                raise self._error("expected '}' for the '{' of the options", opened)
            key = self._name("option name")
            value: str | None = None
            if self._peek() == "=":
                self.at += 1
                value = self._value()
            options.append((key, value))

    def _value(self) -> str:
        start, char = self.at, self._peek()
        if char in ("'", '"'):
            end = self.text.find(char, start + 1)
            if end < 0:
                raise self._error(f"expected a closing {char}", start)
            self.at = end + 1
            return self.text[start + 1 : end]
        if char == "{":
            depth = 0
            while self.at < len(self.text):
                depth += {"{": 1, "}": -1}.get(self.text[self.at], 0)
                self.at += 1
                if depth == 0:
                    return self.text[start + 1 : self.at - 1]
            raise self._error("expected '}' for the '{' of the value", start)
        while self._peek() not in ("", " ", "\t", "\n", "}"):
            self.at += 1
        return self.text[start : self.at]

    def _name(self, what: str) -> str:
        start = self.at
        while (c := self._peek()) and (c.isalnum() or c in _NAME_EXTRA):
            self.at += 1
        if self.at == start:
            raise self._error(f"expected {what}, got {_shown(self._peek())}")
        return self.text[start : self.at]

    def _space(self) -> None:
        while self._peek() in (" ", "\t", "\n", "\r"):
            self.at += 1

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _error(self, message: str, at: int | None = None) -> PipelineError:
        return pipeline_error(self.text, (self.at if at is None else at) + 1, message)


def _shown(char: str) -> str:
    return f"'{char}'" if char else "the end"

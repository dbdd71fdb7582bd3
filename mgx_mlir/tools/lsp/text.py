"""A lexical view of an .mlir file: names, their definitions, and the op around an offset.

It works while a file is being edited, and the parser refuses it.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["op", "value", "symbol", "alias", "block", "brace"]
_TOKEN = re.compile(
    r"""//[^\n]*                                          # a comment
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"?)                  # a string, or an op in the generic form
      | (?P<value>%[\w.$-]+)(?:\#\d+)?(?P<count>:\d+(?=\s*[=,]))?
      | (?P<symbol>@(?:[\w.$-]+|"(?:[^"\\\n]|\\.)*"))
      | (?P<alias>[\#!][A-Za-z_][\w$]*(?![\w.$<]))
      | (?P<block>\^[\w.$-]+)
      | (?P<op>(?<![\w.$\#!])[a-z_]\w*(?:\.[a-z_]\w*)+)
      | (?P<brace>[{}])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OP_NAME = re.compile(r'"[a-z_]\w*(?:\.\w+)+"?$')
_DEFINES_SYMBOL = re.compile(r"\b(?:func|global|module|sym_name|operation|dialect)\b[^@\n]*$")
_DEFINES_VALUE = re.compile(r"\s*(?::\d+)?\s*(?:,\s*%[\w.$-]+(?::\d+)?\s*)*=(?!=)")
_TYPED = re.compile(r"\s*:\s*(?!\d+\s*[=,])")
_COUNT = re.compile(r":(\d+)")
_COMMA = re.compile(r"(?::\d+)?\s*,\s*")
_STARTS = re.compile(r"[ \t]*(?:%[\w.$:,% -]*=[ \t]*)?$")
_OWNER = re.compile(r"(?:@(?:[\w.$-]+|\"[^\"\n]*\")|(?m:^[ \t]*)\^[\w.$-]+)\s*$")
_LONGEST = 20000  # characters of a list of arguments that are searched
BORDER = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass(frozen=True)
class Token:
    """A name in the text: `name` is without quotes; `scope` numbers the braces around it."""

    kind: Kind
    name: str
    start: int
    end: int
    scope: tuple[int, ...] = ()
    defines: bool = False


@dataclass
class Source:
    """The names of a text, in order."""

    text: str
    tokens: list[Token] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._starts: list[int] = []
        open_braces: list[int] = []
        count = 0
        for m in _TOKEN.finditer(self.text):
            kind = m.lastgroup
            if kind == "count":
                kind = "value"
            if kind is None:
                continue
            if kind == "brace":
                if m[0] == "{":
                    count += 1
                    open_braces.append(count)
                elif open_braces:
                    open_braces.pop()
                self._add("brace", m[0], m.start(), m.end(), tuple(open_braces), False)
                continue
            start, end = m.span(kind)
            name = m[kind]
            if kind == "quoted":
                if not _OP_NAME.match(name) or not self._starts_statement(start):
                    continue
                self._add("op", name.strip('"'), start, end, tuple(open_braces), False)
                continue
            self._add(kind, name, start, end, tuple(open_braces), self._defines(kind, start, end))

    def _add(
        self, kind: str, name: str, start: int, end: int, scope: tuple[int, ...], defines: bool
    ) -> None:
        if kind == "op" and not self._starts_statement(start):
            return  # part of a type or an attribute
        self.tokens.append(Token(kind, name, start, end, scope, defines))  # type: ignore[arg-type]
        self._starts.append(start)

    def _line_before(self, at: int) -> str:
        return self.text[self.text.rfind("\n", 0, at) + 1 : at]

    def _starts_statement(self, at: int) -> bool:
        before = self._line_before(at)
        return _STARTS.match(before) is not None or before.rstrip().endswith(("{", "="))

    def _is_argument(self, at: int) -> bool:
        """Return whether a position is in the list of arguments of a function or a block."""
        depth = 0
        for i in range(at - 1, max(at - _LONGEST, -1), -1):
            c = self.text[i]
            if c == ")":
                depth += 1
            elif c == "(" and depth:
                depth -= 1
            elif c == "(":
                return _OWNER.search(self.text[max(i - 200, 0) : i]) is not None
            elif c == "=" and not depth:
                return False
        return False

    def _defines(self, kind: str, start: int, end: int) -> bool:
        before = self._line_before(start)
        if kind == "value":
            # results stand first in their line; what loops carry is in iter_args(%x = %y)
            listed = re.fullmatch(r"[\s%\w.$:,-]*|.*[(,]\s*|.*\bfor\s+", before)
            if listed and _DEFINES_VALUE.match(self.text, end):
                return True
            return _TYPED.match(self.text, end) is not None and self._is_argument(start)
        if kind == "symbol":
            return _DEFINES_SYMBOL.search(before) is not None
        if kind == "alias":
            return not before.strip() and re.match(r"\s*=", self.text[end:]) is not None
        return kind == "block" and not before.strip()

    def at(self, offset: int) -> Token | None:
        """Return the name that an offset is in, None where there is none."""
        i = bisect.bisect_right(self._starts, offset) - 1
        if i >= 0 and self.tokens[i].kind != "brace" and offset <= self.tokens[i].end:
            return self.tokens[i]
        return None

    def definition(self, token: Token) -> Token | None:
        """Return where a name is defined: of values in the scopes around it, the last before it."""
        found = [
            t for t in self.tokens if t.defines and (t.kind, t.name) == (token.kind, token.name)
        ]
        start, end = self._piece(token.start)
        found = [t for t in found if start <= t.start < end]
        if token.kind in ("symbol", "alias"):
            return found[0] if found else None
        near = [t for t in found if t.scope == token.scope[: len(t.scope)]]
        if token.kind == "block":
            return near[0] if near else None
        return next((t for t in reversed(near) if t.start <= token.start), None)

    def _piece(self, offset: int) -> tuple[int, int]:
        """Return the input of a split file that an offset is in."""
        borders = [m.start() for m in BORDER.finditer(self.text)]
        i = bisect.bisect_right(borders, offset)
        return borders[i - 1] if i else 0, borders[i] if i < len(borders) else len(self.text)

    def op_of(self, value: Token) -> tuple[Token | None, int, int]:
        """Return the op that defines a value, its first result there, and how many it names."""
        at = first = self.tokens.index(value)
        before = 0
        while first > 0 and self._is_beside(self.tokens[first - 1], self.tokens[first]):
            first -= 1
            before += self._count(self.tokens[first])
        following = (t for t in self.tokens[at + 1 :] if not (t.kind == "value" and t.defines))
        op = next(following, None)
        found = op if op is not None and op.kind == "op" else None
        return found, before, self._count(value)

    def _is_beside(self, one: Token, other: Token) -> bool:
        between = self.text[one.end : other.start]
        return one.kind == "value" and one.defines and _COMMA.fullmatch(between) is not None

    def _count(self, value: Token) -> int:
        stated = _COUNT.match(self.text, value.end)
        return int(stated[1]) if stated else 1

    def stated_type(self, value: Token) -> str | None:
        """Return the type that the text states behind a value: of arguments."""
        m = _TYPED.match(self.text, value.end)
        if m is None:
            return None
        depth, at = 0, m.end()
        while at < len(self.text):
            c = self.text[at]
            if c in "<([{":
                depth += 1
            elif c in ">)]}" and self.text[at - 1] != "-":
                if depth == 0:
                    break
                depth -= 1
            elif c == "\n" or (c == "," and depth == 0):
                break
            at += 1
        return self.text[m.end() : at].strip() or None

    def attributes_at(self, offset: int) -> tuple[str, str] | None:
        """Return the op whose attributes an offset is in, and their text up to there; None
        elsewhere."""
        depth, text_from = 0, 0
        for t in reversed(self.tokens[: bisect.bisect_left(self._starts, offset)]):
            if t.kind == "brace":
                depth += 1 if t.name == "}" else -1
                if depth == -1 and not text_from:
                    text_from = t.end
                elif depth < -1:
                    return None
            elif t.kind == "op" and depth == -1:
                inner = self.text[t.end : text_from - 1]
                # a region's brace opens behind a parenthesis or ends the line
                is_region = inner.rstrip().endswith("(") or "\n" in self.text[text_from:offset]
                return None if is_region else (t.name, self.text[text_from:offset])
            elif t.kind == "op" and depth == 0:
                return None
        return None

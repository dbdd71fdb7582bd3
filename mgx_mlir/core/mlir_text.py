"""Checks of MLIR text before MLIR's parser reads it.

MLIR's parser and printer recurse without a limit over nested text, and a stack overflow kills the
process. This check costs less than parsing each file in a child process.
"""

from __future__ import annotations

import re
from collections import Counter

from mgx_mlir.core.errors import FileError

MAX_NESTING = 1000  # at some 10,000 levels the parser overflows the stack
MAX_BLOCKS = 200  # nested braces: regions, over which passes recurse in Python
MAX_ALIASES = 50_000_000  # characters of the expanded aliases of a file
_BYTECODE = b"ML\xefR"

# comments and strings first: they contain no tokens
_SKIPPED = r"""
    //[^\n]*
  | (?P<text> "[^"\\\n]*(?:\\.[^"\\\n]*)*"? )
  | (?P<arrow> -> )
  | (?P<number> (?<![\w$.])\d+\.\d*[eE][-+]?\d+ )
"""
_TAKEN = r"""
  | (?P<open> [(\[{<](?!=) )
  | (?P<close> [)\]}] | >(?!=) )
  | (?P<end> , | ::? | ==? | [<>]= )
  | (?P<alias> [#!](?:\d+|[A-Za-z_$][\w$-]*)(?![\w$.]) )
  | (?P<sign> [-+*] | (?<![\w$.@%^#!])(?:mod|floordiv|ceildiv)(?![\w$.]) )
"""
# outside of brackets, words mark the end of an alias's definition
_WORD = r"""
  | (?P<word> [\w$.]+ | [@%^#!][\w$.-]* )
"""
_OUTSIDE = re.compile(_SKIPPED + _TAKEN + _WORD, re.VERBOSE)
_WITHIN = re.compile(re.sub(r"\?P<\w+>", "?:", _SKIPPED) + _TAKEN, re.VERBOSE)
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}


def checked_text(raw: bytes, name: str) -> str:
    """Return the bytes of the file `name` as text. FileError: bytecode, not UTF-8, nested too deep.

    Limits the depth of brackets, chains of operators (affine expressions) and nested aliases, and
    the size of expanded aliases.
    """
    if raw.startswith(_BYTECODE):
        raise FileError("expected MLIR text, got MLIR bytecode", location=name)
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise FileError(
            f"expected MLIR text, but byte {e.start} is not UTF-8", location=name
        ) from None
    _Nesting(text, name).run()
    return text


class _Nesting:
    """One walk over the tokens of a text."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.frames: list[tuple[str, int]] = []  # unclosed brackets, and the operators before each
        self.blocks = 0  # braces among them
        self.chain = 0  # signs and operators since the last comma of this bracket
        self.levels = 0  # depth: unclosed brackets and their chains
        self.depth: dict[str, int] = {}  # depth of each alias, including aliases in it
        self.size: dict[str, int] = {}  # characters of its expansion
        self.later: Counter[str] = Counter()  # uses ahead of the definition, as locations have
        self.expanded = 0
        # the alias that is being defined and its start; its depth, and the size of aliases in it
        self.defining, self.start, self.deepest, self.written = "", 0, 0, 0
        self.complete = False  # flag: the last token outside of brackets may end a definition
        self.before = ""  # the token, if it is an alias that a `=` may follow

    def run(self) -> None:
        """Check all tokens, then aliases that are used ahead of their definition."""
        at, end = 0, len(self.text)
        while at < end:
            within = self.blocks > 0
            for m in (_WITHIN if within else _OUTSIDE).finditer(self.text, at):
                kind = m.lastgroup
                if kind is None or (kind == "end" and within and not self.chain):
                    continue  # most tokens
                self.token(kind, m[0], m.start())
                if within != (self.blocks > 0):
                    at = m.end()
                    break
            else:
                break
        self.defined(end)
        for alias, uses in self.later.items():
            self.check(self.depth.get(alias, 0), end)
            self.expanded += max(uses, 0) * self.size.get(alias, 0)
        self.check_size(end)

    def token(self, kind: str, token: str, at: int) -> None:
        top = not self.frames
        if top and self.complete and kind in ("text", "alias", "word", "number"):
            self.defined(at)
        if kind == "open":
            self.opened(token, at)
        elif kind == "close":
            self.closed(token)
        elif kind == "alias":
            self.used(token, at)
        elif kind == "sign":
            self.chain += 1
            self.level(self.levels + 1, at)
        elif kind == "end" and (self.chain or top):
            if token == "=" and self.before:
                self.defining, self.start, self.deepest, self.written = self.before, at, 0, 0
                self.later[self.before] -= 1  # the name in its definition is not a use
            self.levels -= self.chain
            self.chain = 0
        if top:
            self.complete = kind not in ("end", "arrow", "sign")
            self.before = token if kind == "alias" else ""

    def used(self, alias: str, at: int) -> None:
        """Count the use of an alias, which the printer expands at each use."""
        levels, self.levels = self.levels, self.levels + self.depth.get(alias, 0)
        self.level(self.levels, at)
        self.levels = levels
        if alias not in self.size:
            self.later[alias] += 1
            return
        self.written += self.size[alias]
        self.expanded += self.size[alias]
        self.check_size(at)

    def defined(self, at: int) -> None:
        """End the definition that is being read, ahead of `at`."""
        if self.defining:
            self.depth[self.defining] = self.deepest
            self.size[self.defining] = self.written + at - self.start
            self.defining = ""

    def level(self, levels: int, at: int) -> None:
        """Set the current depth; FileError beyond the limit."""
        self.check(levels, at)
        self.levels = levels
        self.deepest = max(self.deepest, levels)

    def opened(self, bracket: str, at: int) -> None:
        self.frames.append((bracket, self.chain))
        self.chain = 0
        self.level(self.levels + 1, at)
        self.blocks += bracket == "{"
        if self.blocks > MAX_BLOCKS:
            raise self.error(f"nested deeper than {MAX_BLOCKS} braces", at)

    def closed(self, bracket: str) -> None:
        """Close a bracket; a `<` or `>` that compares has no partner."""
        opening = _OPENING[bracket]
        depth = len(self.frames)
        if bracket != ">":
            while depth and self.frames[depth - 1][0] == "<" != opening:
                depth -= 1
        if not depth or self.frames[depth - 1][0] != opening:
            return
        while len(self.frames) >= depth:
            opened, before = self.frames.pop()
            self.blocks -= opened == "{"
            self.levels -= 1 + self.chain
            self.chain = before

    def check(self, levels: int, at: int) -> None:
        if levels > MAX_NESTING:
            raise self.error(f"nested deeper than {MAX_NESTING} levels", at)

    def check_size(self, at: int) -> None:
        if self.expanded > MAX_ALIASES + 10 * len(self.text):
            raise self.error("nested aliases expand to too much text", at)

    def error(self, message: str, at: int) -> FileError:
        line = self.text.count("\n", 0, at) + 1
        return FileError(message, location=f"{self.name}:{line}")

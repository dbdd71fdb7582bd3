"""Diagnostics of mgx-opt: collecting, printing with the source line, expected-* comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.parse_errors import ParseFault

_TAIL = re.compile(r"^(.*?):(\d+):(\d+)$")


@dataclass
class Diagnostic:
    """One message: severity as MLIR spells it, and where it points (line 0: nowhere)."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0

    def render(self, name: str, lines: Sequence[str]) -> str:
        """Write `file:line:col: error: message`, the source line and a caret where there is one."""
        if not self.line:
            return f"{name}: {self.severity}: {self.message}"
        ours = self.file in ("-", name)
        shown = name if ours else self.file
        text = f"{shown}:{self.line}:{self.column}: {self.severity}: {self.message}"
        if ours and self.line <= len(lines) and len(source := lines[self.line - 1]) < 400:
            text += f"\n{source}\n{' ' * max(self.column - 1, 0)}^"
        return text


def position(location: Any) -> tuple[str, int, int]:
    """Return file, line and column of a location; line 0 where it has none."""
    for _ in range(64):
        if isinstance(location, ir.FileLineColLoc):
            return str(location.filename), location.start_line, location.start_col
        if hasattr(location, "child_loc"):
            location = location.child_loc
        elif hasattr(location, "locations") and location.locations:
            location = location.locations[0]
        elif hasattr(location, "callee"):
            location = location.callee
        else:
            break
    return "", 0, 0


@contextmanager
def collecting(context: ir.Context) -> Iterator[list[Diagnostic]]:
    """Collect the diagnostics of MLIR inside the block, in order, notes after their diagnostic."""
    seen: list[Diagnostic] = []

    def take(d: Any) -> bool:
        seen.append(_of(d))
        # text may go through bytecode on its way in (core/operand_segments.py), which the reader
        # of the text need not know
        notes = (n for n in d.notes if not n.message.startswith("in bytecode version"))
        seen.extend(_of(note) for note in notes)
        return True

    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(take)
    try:
        yield seen
    finally:
        handler.detach()
        context.emit_error_diagnostics = before


def _of(d: Any) -> Diagnostic:
    # some of MLIR's own texts end in a zero
    message = d.message.replace("\0", "")
    return Diagnostic(str(d.severity.name).lower(), message, *position(d.location))


def of_error(e: MgxError) -> list[Diagnostic]:
    """Convert one of our user errors to diagnostics."""
    match = _TAIL.match(e.location or "")
    if match:
        where = (match[1], int(match[2]), int(match[3]))
        head = Diagnostic("error", e.message, *where)
        return [head, *(Diagnostic("note", n, *where) for n in e.notes)]
    message = f"{e.location}: {e.message}" if e.location else e.message
    return [Diagnostic("error", message), *(Diagnostic("note", n) for n in e.notes)]


def of_fault(fault: ParseFault | None) -> list[Diagnostic]:
    """Convert a fault in a text to diagnostics; without one, a general message."""
    if fault is None:
        return [Diagnostic("error", "the input cannot be processed")]
    where = ("-", fault.line, fault.column) if fault.line else ("", 0, 0)
    head = Diagnostic("error", fault.message, *where)
    return [head, *(Diagnostic("note", n, *where) for n in fault.notes)]


# ---- expected-error {{...}} ---------------------------------------------------------------------

_EXPECTED = re.compile(
    r"expected-(error|warning|note|remark)(-re)?"
    r" *(@(?:[+-]\d+|above|below|unknown))? *\{\{(.*)\}\} *$"
)


@dataclass
class Expectation:
    """One expected-* comment; line 0 stands for @unknown."""

    severity: str
    text: str
    line: int
    at: int
    is_regex: bool = False
    met: bool = False

    def matches(self, d: Diagnostic) -> bool:
        """Return whether a diagnostic is the expected one."""
        if self.severity != d.severity or self.line != d.line:
            return False
        if not self.is_regex:
            return self.text in d.message
        # MLIR's rule: the text is literal except regular expressions in double braces
        parts = re.split(r"\{\{(.*?)\}\}", self.text)
        body = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts))
        return re.search(body, d.message) is not None


def read_expectations(lines: Sequence[str]) -> list[Expectation]:
    """Read the expected-* comments of a source, one to a line; lines count from 1."""
    found: list[Expectation] = []
    waiting: list[Expectation] = []
    above = 0  # the last line without such a comment
    for number, line in enumerate(lines, 1):
        m = _EXPECTED.search(line) if "expected-" in line else None
        if m is None:
            above = number
            for expectation in waiting:
                expectation.line = number
            waiting = []
            continue
        at = (m[3] or "@+0")[1:]
        fixed = {"unknown": 0, "above": above, "below": -1}
        target = fixed[at] if at in fixed else number + int(at)
        found.append(Expectation(m[1], m[4], target, number, bool(m[2])))
        if at == "below":
            waiting.append(found[-1])
    return found


def compare(expected: Sequence[Expectation], seen: Sequence[Diagnostic], strict: bool) -> list[str]:
    """Return differences as lines of text; `strict` also reports unexpected diagnostics."""
    problems: list[str] = []
    for d in seen:
        match = next((e for e in expected if not e.met and e.matches(d)), None)
        if match is not None:
            match.met = True
        elif strict:
            where = f"{d.line}:{d.column}" if d.line else "unknown"
            problems.append(f"{where}: error: unexpected {d.severity}: {d.message}")
    problems += [
        f'{e.at}:1: error: expected {e.severity} "{e.text}" was not produced'
        for e in expected
        if not e.met
    ]
    return problems

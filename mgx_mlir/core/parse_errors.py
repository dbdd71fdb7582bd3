"""Diagnosis of text that MLIR refuses without an error: position, and expected text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, PREFIX
from mgx_mlir.core.records import dataclass

_CUSTOM = re.compile(r"Dialect `(\w+)' not found for custom op '([\w.$]+)'")
_WHERE = re.compile(r'loc\("[^"]*":(\d+):(\d+)\)')


@dataclass(frozen=True)
class ParseFault:
    """A message, its line and column (0: unknown), and notes."""

    message: str
    line: int = 0
    column: int = 0
    notes: tuple[str, ...] = ()


def find_fault(source: str) -> ParseFault | None:
    """Return the error in a text that did not parse, None where none is found.

    MLIR reports nothing for the custom form of ops defined in Python. With the dialect unregistered
    it does, so the text is parsed once more without it.
    """
    seen = foreign_diagnostics(ir.Module.parse, source)
    return _of(*seen[0]) if seen else None


def foreign_diagnostics(parse: Callable[[str], object], source: str) -> list[tuple[str, str]]:
    """Return messages and locations of the errors in a text, parsed without our dialect."""
    seen: list[tuple[str, str]] = []

    def take(d: Any) -> bool:
        seen.append((str(d.message), str(d.location)))
        return True

    with ir.Context() as without, contextlib.suppress(ir.MLIRError, ValueError):
        without.allow_unregistered_dialects = True
        without.emit_error_diagnostics = True  # the handler gets them, not the exception
        without.attach_diagnostic_handler(take)
        parse(source)
    return seen


def _of(message: str, location: str) -> ParseFault:
    at = _WHERE.match(location)
    line, column = (int(at[1]), int(at[2])) if at else (0, 0)
    found = _CUSTOM.search(message)
    if found is None or f"{found[1]}." != PREFIX:
        return ParseFault(message.replace("\0", "").splitlines()[0], line, column)
    name = found[2]
    cls = OPS.get(name.removeprefix(PREFIX))
    if cls is None:
        return ParseFault(f"'{name}' is not an op of the dialect", line, column)
    operands = ", ".join(f"%{g.name}" for g in cls.OPERANDS)
    types = ", ".join("tensor<...>" for _ in cls.OPERANDS)
    result = "tensor<...>" if len(cls.RESULTS) == 1 else "(...)"
    return ParseFault(
        f"expected the generic form of '{name}', got the custom one",
        line,
        column,
        (f'write it as "{name}"({operands}) {{...}} : ({types}) -> {result}',),
    )

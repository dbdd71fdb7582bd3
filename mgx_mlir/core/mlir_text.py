"""Checks on MLIR text that must come before MLIR's own parser sees it."""

from __future__ import annotations

import re

from mgx_mlir.core.errors import FileError

MAX_NESTING = 1000  # MLIR's parser recurses: at some 10,000 levels it takes the process down
_BRACKETS = re.compile(r"[(\[{}\])]|<|(?<!-)>")
_BYTECODE = b"ML\xefR"


def checked_text(raw: bytes, name: str) -> str:
    """The bytes of the file `name` as text. FileError: bytecode, not UTF-8, nested too deep."""
    if raw.startswith(_BYTECODE):
        raise FileError("expected MLIR text, got MLIR bytecode", location=name)
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise FileError(
            f"expected MLIR text, but byte {e.start} is not UTF-8", location=name
        ) from None
    depth = 0
    for m in _BRACKETS.finditer(text):
        depth = depth + 1 if m[0] in "([{<" else max(depth - 1, 0)
        if depth > MAX_NESTING:
            line = text.count("\n", 0, m.start()) + 1
            raise FileError(f"nested deeper than {MAX_NESTING} levels", location=f"{name}:{line}")
    return text

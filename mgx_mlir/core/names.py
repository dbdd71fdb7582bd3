"""Names from files: made safe to show, and converted to identifiers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Generator, Iterable
from contextlib import contextmanager
from typing import TextIO

# control characters (C0 except tab and newline, DEL, C1), bidirectional controls, line separators,
# and surrogates
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def safe_text(text: str) -> str:
    """Escape control characters for a terminal (ESC: `\\x1b`). Newlines and tabs stay."""
    return _UNSAFE.sub(_escape, text)


def safe_name(name: str) -> str:
    """Return a name for one line of output: safe_text, with newlines and tabs escaped too."""
    return safe_text(name).replace("\n", "\\n").replace("\t", "\\t")


def quoted_unicode(text: str) -> str:
    """Return a string literal of JSON or Python with control characters as `\\u001b`."""
    return _UNSAFE.sub(lambda c: f"\\u{ord(c[0]):04x}", text)


def identifier(name: str, taken: Container[str]) -> str:
    """Return a name of ASCII letters, digits and `_` for code, which is not among `taken`.

    Languages fold letters of other scripts: two names may be one variable there.
    """
    base = re.sub(r"\W", "_", name, flags=re.ASCII)
    base = f"x_{base}" if not base or base[0].isdigit() else base
    found, n = base, 1
    while found in taken:
        found, n = f"{base}_{n}", n + 1
    return found


class SafeStream:
    """A text stream that escapes control characters: see safe_text. Other methods are the
    stream's.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text, made safe to show; return its length."""
        self.stream.write(safe_text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def _open_streams() -> None:
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number
            os.set_inheritable(opened, True)
        # another file may have taken this number first
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r" if fd == 0 else "w")  # noqa: SIM115
            setattr(sys, name, stream)


@contextmanager
def safe_output() -> Generator[None]:
    """Escape control characters in printed text within the block. A closed standard stream
    becomes /dev/null, so that no file opened later gets its number.
    """
    _open_streams()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (None if s is None else SafeStream(s) for s in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts x2 ahead of x10."""
    parts = (part for part in re.split(r"([0-9]+)", name) if part)
    # the longer of two numbers without leading zeros is larger
    return [
        (0, len(digits := part.lstrip("0")), digits) if "0" <= part[0] <= "9" else (1, 0, part)
        for part in parts
    ]

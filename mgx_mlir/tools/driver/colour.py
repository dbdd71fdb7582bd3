"""Colours on a terminal: passed, failed, and suspicious results."""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

Tone = Literal["good", "bad", "odd"]
_CODES: dict[Tone, str] = {"good": "\x1b[32m", "bad": "\x1b[31m", "odd": "\x1b[33m"}
_PLAIN = "\x1b[0m"


def is_coloured(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that takes colours; NO_COLOR turns them off.

    Source: no-color.org, any value but the empty one counts. Windows' old console shows the codes
    themselves; newer terminals there set WT_SESSION or TERM.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if sys.platform == "win32" and not {"WT_SESSION", "TERM"} & set(os.environ):
        return False
    try:
        return stream.isatty()
    except ValueError:
        return False  # a closed stream


def write_in(stream: TextIO, tone: Tone, text: str) -> None:
    """Write text in the colour of a tone where the stream takes it, else as it is."""
    if not is_coloured(stream):
        stream.write(text)
        return
    # a stream that makes names safe to show would show the codes too (core/names.py)
    raw = getattr(stream, "stream", stream)
    raw.write(_CODES[tone])
    stream.write(text)
    raw.write(_PLAIN)

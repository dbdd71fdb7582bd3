"""Level of MIGRAPHX_TRACE_EVAL, which asks to see each instruction as it is evaluated."""

from __future__ import annotations

import os

VARIABLE = "MIGRAPHX_TRACE_EVAL"
_TRUE = ("true", "on", "yes", "y", "enable", "enabled")


def trace_level() -> int:
    """Return the level that the environment asks for: 0 (nothing) to 3."""
    text = os.environ.get(VARIABLE, "").strip().lower()
    if text.isdecimal():
        return min(int(text[:4]), 3)
    return int(text in _TRUE)


__all__ = ["VARIABLE", "trace_level"]

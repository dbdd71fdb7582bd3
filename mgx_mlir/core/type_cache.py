"""Cache of Python values read from MLIR types and attributes; valid while passes run.

MLIR keeps one object for each type and attribute of a context, so that reading one once is enough.
The memory ends with the outermost block: its keys keep their context alive.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Memo:
    """Readings by the MLIR object: of types, of lists of integers, and of constants that are one
    number (None where one is not)."""

    __slots__ = ("ints", "splats", "types")

    def __init__(self) -> None:
        self.types: dict[Any, Any] = {}
        self.ints: dict[Any, tuple[int, ...]] = {}
        self.splats: dict[Any, Any] = {}


MEMO: ContextVar[Memo | None] = ContextVar("mgx_memo", default=None)


@contextmanager
def remembering() -> Generator[None]:
    """Read each type and attribute once inside the block."""
    if MEMO.get() is not None:
        yield
        return
    token = MEMO.set(Memo())
    try:
        yield
    finally:
        MEMO.reset(token)

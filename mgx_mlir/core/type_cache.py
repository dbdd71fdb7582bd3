"""Cache of Python values of MLIR types and attributes, valid while passes run.

MLIR uniques types and attributes in a context, so each is read once. The cache is dropped at the
end of the outermost block, as its keys keep their context alive.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Memo:
    """Values by MLIR object: types, lists of integers, and splat constants (None for other
    constants).
    """

    __slots__ = ("ints", "splats", "types")

    def __init__(self) -> None:
        self.types: dict[Any, Any] = {}
        self.ints: dict[Any, tuple[int, ...]] = {}
        self.splats: dict[Any, Any] = {}


MEMO: ContextVar[Memo | None] = ContextVar("mgx_memo", default=None)


@contextmanager
def remembering() -> Generator[None]:
    """Use the cache inside the block."""
    if MEMO.get() is not None:
        yield
        return
    token = MEMO.set(Memo())
    try:
        yield
    finally:
        MEMO.reset(token)

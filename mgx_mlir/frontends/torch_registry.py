"""The translations of torch.onnx, read once: its exporter parses their sources at every export."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_READER = "from_torchlib"  # a class method of the registry of torch 2.13
_LOCK = Lock()


class _Exports:
    """Exports under way: the first puts a reader of ours in, the last puts torch's own back."""

    def __init__(self) -> None:
        self.count = 0
        self.own: Any = None  # the reader of torch


_EXPORTS = _Exports()


@contextmanager
def translations_kept() -> Iterator[None]:
    """Let the exports inside share one reading of torch.onnx's library.

    A reading takes about 1 s of CPU. Each export gets a registry of its own, to which it may add.
    A torch without a reader of that name exports as it would.
    """
    try:
        kind = importlib.import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
    except (ImportError, AttributeError):
        kind = None
    if kind is None or _READER not in vars(kind):
        yield
        return
    with _LOCK:
        if not _EXPORTS.count:
            _EXPORTS.own = vars(kind)[_READER]
            setattr(kind, _READER, staticmethod(_shared(kind, _EXPORTS.own)))
        _EXPORTS.count += 1
    try:
        yield
    finally:
        with _LOCK:
            _EXPORTS.count -= 1
            if not _EXPORTS.count:
                setattr(kind, _READER, _EXPORTS.own)


def _shared(kind: Any, own: Any) -> Callable[..., Any]:
    def copied(*arguments: Any, **named: Any) -> Any:
        known = _library(kind, own, (*arguments, *named.values()))
        made = kind()
        vars(made).update(vars(known))
        made.functions = {target: list(found) for target, found in known.functions.items()}
        return made

    return copied


@functools.cache
def _library(kind: Any, own: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the registry that torch's reader makes; it is not to be changed."""
    return own.__get__(None, kind)(*arguments)

"""Tables that torch.onnx reads in every export, cached: translations, composite operators."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_LOCK = Lock()


class _Exports:
    """Running exports: the first one installs our cached readers, the last one restores torch's."""

    def __init__(self) -> None:
        self.count = 0
        self.own: list[tuple[Any, str, Any]] = []  # owner, name and torch's reader


_EXPORTS = _Exports()


@contextmanager
def readings_kept() -> Iterator[None]:
    """Let the exports inside share one reading of torch.onnx's library, and of torch's operators.

    Reading the library takes about 1 s of CPU; each export gets a copy of the registry, to which it
    may add. Composite operators are listed once until the last export ends: torch 2.13 lists them
    for each of some 30 namespaces, twice in an export. A torch without these readers exports as
    usual.
    """
    with _LOCK:
        if not _EXPORTS.count:
            for owner, name, ours in _readers():
                _EXPORTS.own.append((owner, name, vars(owner)[name]))
                setattr(owner, name, ours(owner, vars(owner)[name]))
        _EXPORTS.count += 1
    try:
        yield
    finally:
        with _LOCK:
            _EXPORTS.count -= 1
            while not _EXPORTS.count and _EXPORTS.own:
                setattr(*_EXPORTS.own.pop())


def _readers() -> Iterator[tuple[Any, str, Callable[[Any, Any], Any]]]:
    """Return the readers of torch 2.13 that exist: owner, name, and the function that wraps one."""
    exporter = "torch.onnx._internal.exporter._registration"
    for module, kind, name, ours in (
        (exporter, "ONNXRegistry", "from_torchlib", _shared),
        ("torch._export.utils", "", "_materialize_cpp_cia_ops", _once),
    ):
        try:
            owner: Any = importlib.import_module(module)
            owner = getattr(owner, kind) if kind else owner
        except (ImportError, AttributeError):
            continue
        if name in vars(owner):
            yield owner, name, ours


def _once(_owner: Any, own: Callable[[], None]) -> Callable[[], None]:
    return functools.cache(own)


def _shared(kind: Any, own: Any) -> Any:
    def copied(*arguments: Any, **named: Any) -> Any:
        known = _library(kind, own, (*arguments, *named.values()))
        made = kind()
        vars(made).update(vars(known))
        made.functions = {target: list(found) for target, found in known.functions.items()}
        return made

    return staticmethod(copied)


@functools.cache
def _library(kind: Any, own: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the registry from torch's reader; callers must not change it."""
    return own.__get__(None, kind)(*arguments)

"""What a forked child must not take over: locks that others held, and what lives in threads."""

from __future__ import annotations

import os
import threading
import weakref

_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_waited: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_held: list[threading.Lock] = []
_kept: list[object] = []
_count = 0


def lock(*, waits: bool = False) -> threading.Lock:
    """Return a lock that is free in a forked child, whoever held it.

    waits: a fork waits until nobody holds it. For calls of foreign code, whose own locks would
    stay taken in the child for ever.
    """
    made = threading.Lock()
    _locks.add(made)
    if waits:
        _waited.add(made)
    return made


def keep(held: object) -> None:
    """Never free something: ending it would wait for threads that a child does not have."""
    _kept.append(held)


def count() -> int:
    """Return how many forks lie between this process and the one that loaded the project."""
    return _count


def _before() -> None:
    for each in list(_waited):
        each.acquire()
        _held.append(each)


def _after() -> None:
    while _held:
        _held.pop().release()


def _forked() -> None:
    global _count
    _count += 1
    _held.clear()
    for each in list(_locks):
        each._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_forked)

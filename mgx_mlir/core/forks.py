"""State that a forked child must not take over: locks of others, and what lives in threads."""

from __future__ import annotations

import importlib._bootstrap
import os
import sys
import threading
import time
import weakref
from typing import Any

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import RunError

PACKAGES = frozenset(("iree", "mgx_mlir", "torch_mlir"))  # whose imports are guarded, with theirs

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


# ---- modules that are loaded ---------------------------------------------------------------------

_LONGEST_WAIT = 60.0  # seconds that a fork waits for modules that other threads load
_STEP = 0.05  # seconds that a fork waits for one lock before it lets go of the others
_gate = threading.Lock()  # held across a fork, and where a load begins or ends
_loads: dict[int, int] = {}  # nested loads under way, by thread
_cut_short = False  # this process was forked while another thread loaded modules


class _Loading:
    """The context of a load, which a fork of another thread waits for."""

    def __enter__(self) -> None:
        own = threading.get_ident()
        with _gate:
            _loads[own] = _loads.get(own, 0) + 1

    def __exit__(self, *_: object) -> None:
        own = threading.get_ident()
        with _gate:
            _loads[own] = _loads.get(own, 1) - 1
            if not _loads[own]:
                del _loads[own]


_LOADING = _Loading()


def loading() -> _Loading:
    """Return the context in which modules are imported: no other thread forks meanwhile."""
    return _LOADING


def usable() -> None:
    """Raise RunError in a process that was forked in the middle of a load: it would never end."""
    if _cut_short:
        raise RunError(
            "this process was forked while another thread loaded modules, and cannot load them",
            notes=["fork before or after the first call, or start processes with `spawn`"],
        )


def _others_load() -> bool:
    return any(thread != threading.get_ident() for thread in _loads)


def _free_imports() -> None:
    """Take away the imports that threads were in which a forked child does not have.

    `_before` has waited until none of them was in the middle of a module of ours, or `usable` says
    so. A module of others, such as hashlib that a function of the standard library imports, is
    imported again: its lock would never be free.
    """
    table: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})
    own = threading.get_ident()
    for name, reference in list(table.items()):
        if getattr(reference(), "owner", own) in (None, own):
            continue
        table.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):  # its execution has not begun, or is cut short
            del sys.modules[name]


# ---- forks ---------------------------------------------------------------------------------------

_forking = threading.Lock()  # one fork at a time: `_held` is of one


def _before() -> None:
    with interrupts.later():  # a hook's exception is lost, and so would be its resources
        _forking.acquire()
        end = time.monotonic() + _LONGEST_WAIT
        while True:
            if not _take_waited():
                continue
            _gate.acquire()
            if not _others_load() or time.monotonic() > end:
                return
            _gate.release()
            _release_held()  # a loaded module may need them
            time.sleep(0.002)


def _take_waited() -> bool:
    """Take the locks that a fork waits for; none where another thread keeps one.

    The thread may want one that is taken here, so nothing is kept while it is waited for.
    """
    for each in list(_waited):
        if not each.acquire(timeout=_STEP):
            _release_held()
            return False
        _held.append(each)
    return True


def _release_held() -> None:
    while _held:
        _held.pop().release()


def _after() -> None:
    with interrupts.later():
        _gate.release()
        _release_held()
        _forking.release()


def _forked() -> None:
    global _count, _cut_short
    _count += 1
    _held.clear()
    for each in (_forking, _gate, *_locks):
        each._at_fork_reinit()  # type: ignore[attr-defined]
    _cut_short = _cut_short or _others_load()
    own = threading.get_ident()
    for thread in [t for t in _loads if t != own]:
        del _loads[thread]
    _free_imports()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_forked)

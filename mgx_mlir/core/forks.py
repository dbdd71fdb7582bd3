"""State that a forked child must not inherit: locks of other threads, and objects tied to
threads.
"""

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

PACKAGES = frozenset(("iree", "mgx_mlir", "torch_mlir"))  # packages whose imports are guarded

_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_waited: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_held: list[threading.Lock] = []
_kept: list[object] = []
_count = 0


def lock(*, waits: bool = False) -> threading.Lock:
    """Return a lock that is free in a forked child, whichever thread held it.

    waits: a fork waits until it is free. For calls of foreign code, whose own locks would stay
    locked in the child.
    """
    made = threading.Lock()
    _locks.add(made)
    if waits:
        _waited.add(made)
    return made


def keep(held: object) -> None:
    """Keep an object alive for ever: its destructor would wait for threads that a child lacks."""
    _kept.append(held)


def count() -> int:
    """Return the number of forks between this process and the one that loaded the project."""
    return _count


# ---- modules that are loaded ---------------------------------------------------------------------

_LONGEST_WAIT = 60.0  # seconds that a fork waits for imports of other threads
_STEP = 0.05  # seconds that a fork waits for one lock before it releases the others
_gate = threading.Lock()  # held across a fork, and where a load begins or ends
_loads: dict[int, int] = {}  # depth of nested imports, by thread
_cut_short = False  # True: this process was forked during an import of another thread


class _Loading:
    """The context of an import; forks of other threads wait for its end."""

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
    """Return the context for importing modules: other threads cannot fork inside."""
    return _LOADING


def usable() -> None:
    """Raise RunError in a process that was forked during an import, as that import would never
    end.
    """
    if _cut_short:
        raise RunError(
            "this process was forked while another thread imported modules, and cannot import them",
            notes=["fork before or after the first call, or start processes with `spawn`"],
        )


def _others_load() -> bool:
    return any(thread != threading.get_ident() for thread in _loads)


def _free_imports() -> None:
    """Remove the half-done imports of threads that a forked child lacks.

    `_before` has waited for modules of our packages, or `usable` raises. Other modules, such as
    hashlib, are imported again, as their import locks would never be free.
    """
    table: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})
    own = threading.get_ident()
    for name, reference in list(table.items()):
        if getattr(reference(), "owner", own) in (None, own):
            continue
        table.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):  # not executed, or only in part
            del sys.modules[name]


# ---- forks ---------------------------------------------------------------------------------------

_forking = threading.Lock()  # one fork at a time: `_held` belongs to it


def _before() -> None:
    with interrupts.later():  # an exception in a fork hook is lost
        _forking.acquire()
        end = time.monotonic() + _LONGEST_WAIT
        while True:
            if not _take_waited():
                continue
            _gate.acquire()
            if not _others_load() or time.monotonic() > end:
                return
            _gate.release()
            _release_held()  # an imported module may need them
            time.sleep(0.002)


def _take_waited() -> bool:
    """Acquire the locks that a fork waits for; release all where another thread holds one.

    That thread may need one of them, so none is held while waiting.
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

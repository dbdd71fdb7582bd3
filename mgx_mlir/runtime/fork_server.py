"""A fork server: it prepares state once, and forks workers that share it.

It is started as a script, so that `sys.path` is set before this package is imported. It has one
thread, so that a fork copies no locked lock. Requests are lines of JSON on a socket: first {"path",
"handler", "setup"}; then {"fork": true} with the worker's descriptor, and {"end": PID}. Each gets a
line as answer. When the socket closes, all workers end.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

_PARENT_DEATH_SIGNAL = 1  # option of prctl(2)


class _Lines:
    """Lines of a socket, each with the descriptors that came with it."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._rest = control, b""

    def next(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return the next line; None when the other end has closed."""
        fds: list[int] = []
        while b"\n" not in self._rest:
            try:
                data, more, _, _ = socket.recv_fds(self._control, 1 << 16, 4)
            except OSError:
                return None
            if not data:
                return None
            self._rest += data
            fds += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line), fds


def _answer(control: socket.socket, row: dict[str, Any]) -> None:
    control.sendall(json.dumps(row).encode() + b"\n")


def _problem(e: Exception) -> dict[str, Any]:
    """Return an error as JSON; one of a user's keeps its texts."""
    message = getattr(e, "message", None)
    if message is None:
        return {"kind": "MgxError", "message": f"{type(e).__name__}: {e}", "location": None,
                "notes": []}  # fmt: skip
    own: Any = e
    return {"kind": type(e).__name__, "message": message, "location": own.location,
            "notes": list(own.notes)}  # fmt: skip


def _work(serve: Callable[[socket.socket], None], fd: int, control: socket.socket) -> NoReturn:
    """Serve on a descriptor, in the process that was just forked, and end it."""
    code = 1
    try:
        control.close()
        if sys.platform == "linux":
            parent = os.getppid()
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
        with socket.socket(fileno=fd) as own:
            serve(own)
        code = 0
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)  # skips threads of a runtime that may be running


def _ended(pid: int) -> int:
    """Kill a child; return its exit status, or minus the signal that it died of."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def main(argv: list[str]) -> int:
    """Run as the module docstring says; argv: the number of the socket."""
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C in a terminal: the parent handles it
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=int(argv[0]))
    lines = _Lines(control)
    first = lines.next()
    if first is None:
        return 1
    row = first[0]
    sys.path[:] = row["path"]
    module, _, name = row["handler"].partition(":")
    try:
        serve = getattr(importlib.import_module(module), name)(row["setup"])
    except Exception as e:
        _answer(control, {"problem": _problem(e)})
        return 1
    gc.collect()
    gc.freeze()  # freeze objects, so that collections in a worker write to no shared page
    _answer(control, {"ready": True})
    children: set[int] = set()
    while (order := lines.next()) is not None:
        row, fds = order
        if "fork" in row:
            pid = os.fork()
            if pid == 0:
                _work(serve, fds[0], control)
            children.add(pid)
            _answer(control, {"pid": pid})
        elif row["end"] in children:
            children.discard(row["end"])
            _answer(control, {"status": _ended(row["end"])})
        else:
            _answer(control, {"status": None})
        for fd in fds:
            os.close(fd)
    for pid in children:
        _ended(pid)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

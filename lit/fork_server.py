"""Runs mgx-opt and filecheck for lit in forks of one process that has imported them.

A command of lit is a process of its own still, with its arguments, environment, folder and streams;
what it does not pay is Python's start and the imports, most of the time of a small file.

    python lit/fork_server.py SOCKET      print a line when ready, serve until stdin closes
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MODULES = {"mgx-opt": "mgx_mlir.tools.opt.main", "filecheck": "filecheck.main"}
# modules that every run imports; none makes an MLIR context, whose threads a fork would lack
AHEAD = ("mgx_mlir.passes", "mgx_mlir.dialects", "mgx_mlir.tools.opt.session")
Tool = Callable[[list[str]], int | None]
LONGEST = 1 << 20  # bytes of a request


@dataclass
class _Running:
    """A command: its process, and the client that waits for it."""

    pid: int
    client: socket.socket


def serve(path: str) -> None:
    """Fork for each request; where the client goes, as at lit's time limit, its command ends."""
    tools = {name: importlib.import_module(module).main for name, module in MODULES.items()}
    for module in AHEAD:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a fork's collector would touch, and so copy, every page
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen(64)
    print("ready", flush=True)
    events = selectors.DefaultSelector()
    events.register(listening, selectors.EVENT_READ)
    events.register(0, selectors.EVENT_READ)
    running: dict[int, _Running] = {}  # keyed by the file number of the process and of the client
    while True:
        for key, _ in events.select():
            if key.fileobj == 0:
                if not os.read(0, 1):
                    return
            elif key.fileobj is listening:
                client, _ = listening.accept()
                pid = _start(client, tools)
                watch = os.pidfd_open(pid)
                one = running[watch] = running[client.fileno()] = _Running(pid, client)
                events.register(watch, selectors.EVENT_READ)
                events.register(one.client, selectors.EVENT_READ)
            elif (one := running.get(key.fd)) is not None:
                if key.fd == one.client.fileno():  # a client sends one request, so this is its end
                    os.kill(one.pid, signal.SIGKILL)
                    events.unregister(one.client)
                    continue
                _, status = os.waitpid(one.pid, 0)
                _answer(one.client, status)
                events.unregister(key.fd)
                os.close(key.fd)
                if one.client.fileno() in events.get_map():
                    events.unregister(one.client)
                del running[key.fd], running[one.client.fileno()]
                one.client.close()


def _answer(client: socket.socket, status: int) -> None:
    with contextlib.suppress(OSError):  # the process has already ended
        client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _start(client: socket.socket, tools: dict[str, Tool]) -> int:
    """Read the request and fork; the fork becomes the command."""
    data, streams, _, _ = socket.recv_fds(client, LONGEST, 3)
    while not data.endswith(b"\n"):
        data += client.recv(LONGEST)
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        return pid
    status = 1  # Python's status for an exception
    try:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        # the server's own took note of whether they can seek
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        status = _command(json.loads(data), tools)
    except BaseException:  # nothing of the fork may go on as a server
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                status = status or 120  # Python's status where flushing fails
        os._exit(status)


def _command(request: Any, tools: dict[str, Tool]) -> int:
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    name, *arguments = request["command"]
    sys.argv = [name, *arguments]
    try:
        given = sys.argv if name == "filecheck" else arguments
        return tools[name](given) or 0
    except SystemExit as e:  # exit with the status that Python would use
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        print(e.code, file=sys.stderr)
        return 1


if __name__ == "__main__":
    serve(sys.argv[1])

"""Programs that are cut short otherwise than by a signal's exception in a plain call.

    python -m tests.process.endings NAME

Each prints what it saw, and at last that the next calls are right.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy.testing  # here: an import takes a TimeoutError for an error of its own

import mgx_mlir as mgx
from tests.process import threads

DATA = threads.model(0)


class Mine(Exception):
    """An exception of the caller's own."""


def compiled(cache: bool = False) -> Any:
    return mgx.compile(DATA, "cpu", cache=cache)


def afterwards() -> None:
    """The user's next calls."""
    with tempfile.TemporaryDirectory() as folder:
        for cache in (True, False):
            program = compiled(cache)
            threads.checked(program.run, 0)
        mgx.save(program, Path(folder, "m.mxr"))
        threads.checked(mgx.load(Path(folder, "m.mxr")).run, 0)
    print("right afterwards")


def tasks_that_are_cancelled() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.to_thread(compiled))
        await asyncio.sleep(0.3)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            print("cancelled")
        try:
            await asyncio.wait_for(asyncio.to_thread(compiled), 0.2)
        except asyncio.TimeoutError:
            print("timeout")

    asyncio.run(main())
    afterwards()


def an_interrupt_in_a_coroutine() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

    async def main() -> None:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            threads.checked(compiled().run, 0)
            await asyncio.sleep(0)

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
    afterwards()


def calls_at_exit() -> None:
    program = compiled()

    def call() -> None:
        threads.checked(program.run, 0)
        afterwards()

    atexit.register(call)


def daemons(work: Callable[[], object]) -> None:
    """End while a daemon thread is at work, with what it has not finished."""

    def forever() -> None:
        while True:
            work()

    threading.Thread(target=forever, daemon=True).start()
    time.sleep(random.uniform(0.0, 1.5))
    print("right afterwards")


def a_daemon_that_compiles() -> None:
    daemons(compiled)


def a_daemon_that_runs() -> None:
    program = compiled(cache=True)
    daemons(lambda: threads.checked(program.run, 0))


def a_traceback_that_is_kept() -> None:
    """Keep the frames of the interrupted call, as a notebook does."""

    def handler(number: int, frame: object) -> None:
        raise Mine

    signal.signal(signal.SIGALRM, handler)
    for seconds in (0.05, 0.5):
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            while True:
                compiled()
        except Mine:
            sys.last_type, sys.last_value, sys.last_traceback = sys.exc_info()
        afterwards()


NAMES = (
    tasks_that_are_cancelled, an_interrupt_in_a_coroutine, calls_at_exit, a_daemon_that_compiles,
    a_daemon_that_runs, a_traceback_that_is_kept,
)  # fmt: skip


if __name__ == "__main__":
    assert numpy.testing
    {f.__name__: f for f in NAMES}[sys.argv[1]]()

"""Progress on stderr: a line per step, and a spinner where a step takes long on a terminal."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DELAY = 2.0  # seconds before a spinner shows


def say(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step; on a terminal, show that it is at work once it has taken two seconds."""
    say(text)
    with working(text):
        yield


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner on a terminal after two seconds; MGX_NO_PROGRESS=1 turns it off."""
    if os.environ.get("MGX_NO_PROGRESS") or not sys.stderr.isatty():
        yield
        return
    spinner = _Spinner(text.rstrip(". "))
    timer = threading.Timer(DELAY, spinner.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        spinner.stop()


class _Spinner:
    """A rich spinner with the seconds gone by; starting after `stop` does nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._ended = False
        self._shown: Any = None

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._ended:
                return
            self._shown = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            task = self._shown.add_task(self._text, total=None)
            self._shown.tasks[task].start_time -= DELAY  # the step is as old as that
            self._shown.start()

    def stop(self) -> None:
        with self._lock:
            self._ended = True
            if self._shown is not None:
                self._shown.stop()
